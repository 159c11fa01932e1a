"""A proposal that waits shows what it would still do, and is stale once its gain is lost."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.errors import Conflict
from controlplane.models import Cluster, Proposal, Query
from controlplane.proposals import decisions, staleness
from controlplane.proposals.drift import drift_of
from controlplane.proposals.review import gain_lost, review
from controlplane.topology import placement, queries
from controlplane.topology.apply import TopologyChange, apply
from controlplane.wire.routing.query_actions import MoveTasks
from tests.support.execution import moved_names, moves_of, prepared_plan, prepared_scattered
from tests.support.policies import set_policy

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@pytest.fixture
def proposal(operator: Actor, sf: Cluster) -> Proposal:
    """A ready plan for twelve scattered queries."""
    return prepared_plan(operator, prepared_scattered(operator, sf))


def test_an_unchanged_cluster_has_the_planned_effect(proposal: Proposal) -> None:
    fresh = review(proposal)
    assert (fresh.applicable, fresh.obstacles) == (len(proposal.actions), {})
    assert fresh.after["imbalance"] == pytest.approx(proposal.after["imbalance"])
    assert fresh.gain_lost == pytest.approx(0.0, abs=1e-9)
    assert proposal.review == fresh.to_json()


def test_queries_that_ended_are_counted_apart(operator: Actor, proposal: Proposal) -> None:
    names = moved_names(proposal)[:2]
    queries.end(operator, proposal.cluster, names)
    placement.place_pending(proposal.cluster_id)
    fresh = review(proposal)
    assert fresh.applicable == len(proposal.actions) - 2
    assert fresh.obstacles == {"ended": 2}
    assert fresh.before["replication_factor"] != proposal.before["replication_factor"]


def test_drift_counts_obstacles_that_the_last_review_does_not_know(
    operator: Actor, proposal: Proposal
) -> None:
    review(proposal)
    assert drift_of(proposal).obstacles == {}
    first, second = moved_names(proposal)[:2]
    moved = Query.objects.get(cluster=proposal.cluster_id, name=first).pk
    elsewhere = next(m.target for m in moves_of(proposal) if m.query == moved)
    cluster = Cluster.objects.get(pk=proposal.cluster_id)
    apply(cluster, [MoveTasks(moved, ((elsewhere, 0, 1),))], TopologyChange("another hand"))
    before, drift = timezone.now(), drift_of(proposal)
    assert drift.obstacles == {"changed": 1}
    assert drift.drifting_since is not None
    assert before <= datetime.fromisoformat(drift.drifting_since) <= timezone.now()
    queries.end(operator, cluster, [second])
    assert drift_of(proposal).obstacles == {"changed": 1, "ended": 1}, "before its version"


def lose_the_gain(proposal: Proposal) -> None:
    """Apply the moves of the plan by another hand."""
    cluster = Cluster.objects.get(pk=proposal.cluster_id)
    done = [MoveTasks(move.query, ((move.target, 0, 1),)) for move in moves_of(proposal)]
    apply(cluster, done, TopologyChange("another hand"))


def test_a_plan_whose_gain_is_lost_becomes_stale_while_it_waits(proposal: Proposal) -> None:
    set_policy(proposal.cluster, tolerated_gain_loss=0.4)
    lose_the_gain(proposal)
    # The rows of the plan may be older than this test.
    assert staleness.review_waiting(proposal.requested_at) == 0, "it was computed a moment ago"
    assert staleness.review_waiting(timezone.now() + staleness.EVERY) == 1
    proposal.refresh_from_db()
    assert (proposal.state, proposal.drift["gain_lost"]) == ("stale", 1.0)
    assert proposal.review["applicable"] == 0


def test_all_of_the_gain_may_be_lost_if_the_policy_tolerates_it(proposal: Proposal) -> None:
    """Though another hand has changed the queries."""
    set_policy(proposal.cluster, tolerated_gain_loss=1.0)
    lose_the_gain(proposal)
    assert staleness.review_waiting(timezone.now() + staleness.EVERY) == 1
    proposal.refresh_from_db()
    assert (proposal.state, proposal.review["gain_lost"]) == ("ready", 1.0)


def test_a_review_remembers_when_the_gain_was_lost(proposal: Proposal) -> None:
    assert review(proposal).lost_at == ""
    lose_the_gain(proposal)
    set_policy(proposal.cluster, tolerated_gain_loss=0.4)
    lost = review(proposal)
    assert lost.lost_at == lost.at
    set_policy(proposal.cluster, tolerated_gain_loss=1.0)
    assert review(proposal).lost_at == lost.at


def test_a_part_of_the_gain_may_be_lost(
    approver: Actor, operator: Actor, proposal: Proposal
) -> None:
    set_policy(proposal.cluster, tolerated_gain_loss=0.9, tolerated_ended=1.0)
    queries.end(operator, proposal.cluster, moved_names(proposal)[:2])
    placement.place_pending(proposal.cluster_id)
    later = timezone.now() + timedelta(minutes=1)
    assert staleness.review_waiting(later) == 1
    proposal.refresh_from_db()
    assert proposal.state == "ready"
    assert staleness.review_waiting(timezone.now()) == 0, "not twice within eight seconds"
    decisions.approve(approver, proposal, proposal.seal)
    assert Query.objects.filter(state="running").count() == 10


def test_approval_recomputes_the_effect(approver: Actor, proposal: Proposal) -> None:
    """Whatever the last review said."""
    review(proposal)
    lose_the_gain(proposal)
    with pytest.raises(Conflict) as refused:
        decisions.approve(approver, proposal, proposal.seal)
    assert refused.value.code == "stale"
    assert refused.value.data["gain_lost"] == 1.0


def test_a_plan_without_a_gain_has_none_to_lose(proposal: Proposal) -> None:
    proposal.after = dict(proposal.before)
    assert gain_lost(proposal, proposal.before, proposal.after) is None
