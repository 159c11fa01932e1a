"""What applies by itself: each condition of the policy, with the number that decided."""

from datetime import UTC, datetime, time
from typing import Any

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Blackout, Cluster, LedgerEntry, Proposal
from controlplane.policies.auto_approval import decide_auto_approval, refusals
from controlplane.policies.settings import PolicySettings, settings_of
from tests.support.execution import prepared_plan, prepared_scattered

pytestmark = pytest.mark.django_db(transaction=True)
WEDNESDAY = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.fixture
def plan(operator: Actor, sf: Cluster) -> Proposal:
    """A placement that lowers the replication factor."""
    return prepared_plan(operator, prepared_scattered(operator, sf))


def policy(plan: Proposal, **changed: Any) -> PolicySettings:
    return settings_of({"auto_kinds": ["placement"], "watch_imbalance": 10.0, **changed})


def code(plan: Proposal, at: datetime = WEDNESDAY, **changed: Any) -> str:
    return decide_auto_approval(plan, policy(plan, **changed), at).code


def test_what_the_policy_allows_is_allowed_with_its_gain(plan: Proposal) -> None:
    verdict = decide_auto_approval(plan, policy(plan), WEDNESDAY)
    assert verdict.allowed
    was, becomes = (one["replication_factor"] for one in (plan.before, plan.after))
    assert verdict.number == pytest.approx((was - becomes) / was)
    assert verdict.limit == 0.05


def test_by_default_nothing_that_moves_state_does(plan: Proposal) -> None:
    verdict = decide_auto_approval(plan, PolicySettings(), WEDNESDAY)
    assert (verdict.allowed, verdict.code) == (False, "kind")
    assert "a person approves" in verdict.text
    assert PolicySettings().auto_kinds == ["admission", "shedding"]


def test_size_is_bounded(plan: Proposal) -> None:
    verdict = decide_auto_approval(plan, policy(plan, auto_moves=1), WEDNESDAY)
    assert (verdict.code, verdict.number, verdict.limit) == ("moves", len(plan.actions), 1)
    plan.predicted["bytes"] = 11_000_000
    verdict = decide_auto_approval(plan, policy(plan), WEDNESDAY)
    assert (verdict.code, verdict.number, verdict.limit) == ("bytes", 11_000_000, 10_000_000)
    assert "11.0 MB of state, at most 10.0 MB" in verdict.text


def test_every_refusal_is_listed_in_its_order(plan: Proposal) -> None:
    strict = policy(plan, auto_kinds=[], auto_moves=1, auto_gain=0.99)
    assert [refusal.code for refusal in refusals(plan, strict)] == ["kind", "moves", "gain"]
    assert refusals(plan, policy(plan)) == []


def test_a_gain_is_asked_for(plan: Proposal) -> None:
    verdict = decide_auto_approval(plan, policy(plan, auto_gain=0.99), WEDNESDAY)
    assert (verdict.code, verdict.limit) == ("gain", 0.99)
    plan.actions = []
    assert code(plan, auto_gain=0.0) == "gain", "nothing to move is not a gain at all"


def test_a_plan_that_spoils_another_measure_does_not(plan: Proposal) -> None:
    """The loop of that measure would undo it next."""
    plan.before["imbalance"], plan.after["imbalance"] = 0.1, 0.3
    assert code(plan, watch_imbalance=0.2) == "spoils"
    assert code(plan, watch_imbalance=0.4) == "allowed"


@pytest.mark.parametrize(
    ("days", "begin", "end", "hour", "expected"),
    [
        ([2], None, None, 12, "allowed"),
        ([0, 1], None, None, 12, "day"),
        ([], time(11), time(13), 12, "allowed"),
        ([], time(13), time(14), 12, "time"),
        ([], time(11), time(12), 12, "time"),
        ([], time(22), time(6), 23, "allowed"),
        ([], time(22), time(6), 5, "allowed"),
        ([], time(22), time(6), 12, "time"),
        ([1], time(22), time(6), 5, "allowed"),
        ([2], time(22), time(6), 5, "day"),
        ([2], time(22), time(6), 23, "allowed"),
    ],
)
def test_days_and_hours(
    plan: Proposal, days: list[int], begin: time | None, end: time | None, hour: int, expected: str
) -> None:
    """The small hours of a window over midnight belong to the day before."""
    at = WEDNESDAY.replace(hour=hour)
    assert code(plan, at, auto_days=days, auto_from=begin, auto_until=end) == expected


def test_not_in_a_blackout(plan: Proposal) -> None:
    Blackout.objects.create(
        cluster=plan.cluster, cron="0 11 * * *", minutes=120, reason="rush", owner="x",
        created_at=WEDNESDAY,
    )  # fmt: skip
    verdict = decide_auto_approval(plan, policy(plan), WEDNESDAY)
    assert (verdict.code, "rush" in verdict.text) == ("blackout", True)


@pytest.mark.parametrize(
    ("measured", "runs", "expected"),
    [([0.5] * 2, 3, "record"), ([0.5] * 3, 3, "allowed"), ([1.0, 1.0, 0.5], 3, "record")],
)
def test_the_planner_must_have_a_good_record(
    plan: Proposal, measured: list[float], runs: int, expected: str
) -> None:
    """0.5 was promised; the median run is off by half or by nothing."""
    for imbalance in measured:
        entry = Proposal.objects.create(cluster=plan.cluster, requested_at=timezone.now())
        LedgerEntry.objects.create(
            proposal=entry, cluster=plan.cluster, planner="placement", algorithm="mms",
            approved={"imbalance": 0.5}, measured={"imbalance": imbalance}, at=WEDNESDAY,
        )  # fmt: skip
    asked: dict[str, Any] = {
        "auto_record": True,
        "auto_record_runs": runs,
        "auto_record_error": 0.25,
    }
    assert code(plan, **asked) == expected


def test_who_asked_may_matter(plan: Proposal) -> None:
    assert code(plan, auto_asked=False) == "asked"
    plan.origin = "watch"
    assert code(plan, auto_asked=False) == "allowed"


def test_what_is_for_people_to_choose_stays_theirs(plan: Proposal) -> None:
    plan.origin = "derived"
    assert code(plan) == "candidate"
    plan.origin, plan.decided_by = "person", "somebody who withdrew the approval"
    assert code(plan) == "decided"
    plan.state = "approved"
    assert code(plan) == "not_ready"
