"""The dialog of a request shows what plans reach, and requests the chosen one."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Proposal
from controlplane.planners.placement.trade import compute_trade, trade_of
from tests.support.execution import scattered
from tests.support.policies import set_policy
from tests.support.watching import reachable

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The clusters of which a trade was requested."""
    clusters: list[Any] = []
    monkeypatch.setattr(
        "controlplane.planners.placement.snapshot_work.send_on_commit",
        lambda name, cluster, **_: clusters.append(cluster),
    )
    return clusters


def shown(client: Client, cluster: Cluster) -> str:
    response = client.get(reverse("proposal-trade", args=[cluster.slug]))
    assert response.status_code == 200
    return response.content.decode()


def test_the_trade_is_computed_once_and_kept(
    operator: Actor, sf: Cluster, operating: Client, sent: list[Any]
) -> None:
    cluster = scattered(operator, sf)
    waiting = shown(operating, cluster)
    assert "is being computed" in waiting
    assert "hx-trigger" in waiting
    assert "is being computed" in shown(operating, cluster)
    assert sent == [cluster.pk]
    compute_trade(cluster.pk)
    ready = shown(operating, cluster)
    assert "hx-trigger" not in ready
    assert sent == [cluster.pk], "it is kept"
    assert 'name="slack"' in ready


def test_points_above_the_limit_of_the_policy_cannot_be_chosen(
    operator: Actor, sf: Cluster, sent: list[Any]
) -> None:
    """At each slack the best plan is no better than with more slack."""
    cluster = scattered(operator, sf)
    reachable(cluster, 1.0)
    set_policy(cluster, watch_imbalance=0.3)
    compute_trade(cluster.pk)
    trade = trade_of(cluster)
    assert trade is not None
    assert [point.slack for point in trade.points] == [0.05, 0.1, 0.2, 0.3, 0.4]
    assert [point.is_allowed for point in trade.points] == [True, True, True, True, False]
    assert trade.limit == pytest.approx(1.2)
    moves, factor = trade.curve[0]
    assert moves == 0
    assert factor > 1.2
    assert all(point.imbalance <= point.slack + 1e-9 for point in trade.points if point.is_kept)
    best = trade.recommended
    assert best is None or best.is_allowed


def test_a_choice_is_the_largest_imbalance_of_the_plan(
    operator: Actor, sf: Cluster, operating: Client
) -> None:
    cluster = scattered(operator, sf)
    form = {"goal": "repair", "slack": "0.1"}
    operating.post(reverse("proposal-ask", args=[cluster.slug]), form)
    proposal = Proposal.objects.get()
    assert proposal.parameters["imbalance"] == 0.1
    operating.post(reverse("proposal-ask", args=[cluster.slug]), {"goal": "traffic"})
    assert Proposal.objects.latest("pk").parameters["imbalance"] is None
    operating.post(reverse("proposal-ask", args=[cluster.slug]), form | {"slack": "x"})
    assert Proposal.objects.count() == 2, "no number"


def test_without_queries_the_reason_is_shown(sf: Cluster, operating: Client) -> None:
    sf.queries.all().delete()
    compute_trade(sf.pk)
    text = shown(operating, sf)
    assert "Nothing can be computed now" in text
    assert "hx-trigger" not in text
