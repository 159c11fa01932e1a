"""Equal decisions in a row are one row, and only news is told."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.models import Cluster, Decision, Delivery, Webhook
from controlplane.watch.decision import LoopDecision
from controlplane.watch.decision_log import record_decision

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


def course(cluster: Cluster, *codes: str) -> list[Decision]:
    """Let a loop decide every ten seconds; return the rows."""
    for at, code in enumerate(codes):
        outcome = LoopDecision(code, float(at), 9.0, f"told {at}")
        record_decision(cluster, "imbalance", outcome, NOW + timedelta(seconds=10 * at))
    return list(Decision.objects.order_by("id"))


def test_equal_decisions_go_on_counting(sf: Cluster) -> None:
    rows = course(sf, "balanced", "balanced", "asked", "balanced", "balanced", "balanced")
    assert [(row.code, row.count, row.number) for row in rows] == [
        ("balanced", 2, 1.0), ("asked", 1, 2.0), ("balanced", 3, 5.0),
    ]  # fmt: skip
    assert rows[2].last_at - rows[2].first_at == timedelta(seconds=20)
    assert rows[2].text == "told 5", "the newest figure"


def test_a_pass_that_began_before_a_judgement_stays_behind_it(sf: Cluster) -> None:
    record_decision(
        sf, "imbalance", LoopDecision("acted", 0.5, 0.1, "x"), NOW + timedelta(seconds=3)
    )
    record_decision(sf, "imbalance", LoopDecision("execution_running", 0.5, 0.1, "x"), NOW)
    newest = Decision.objects.order_by("-last_at", "-id")[0]
    assert newest.code == "execution_running"


def test_a_figure_that_hovers_is_told_once(sf: Cluster) -> None:
    """Trouble, its end, and what is done: not every reason why nothing was done meanwhile."""
    Webhook.objects.create(
        name="w", url="https://example.org/", kinds=["alerts"], salt="s", created_by="x",
        created_at=NOW,
    )  # fmt: skip
    course(
        sf, "balanced", "asked", "proposal_waiting", "recommended", "dead_band", "cooldown",
        "dead_band", "cooldown", "balanced", "data_too_old", "balanced",
    )  # fmt: skip
    told = [json.loads(row.body)["data"]["state"] for row in Delivery.objects.order_by("id")]
    assert told == ["asked", "recommended", "balanced"]
