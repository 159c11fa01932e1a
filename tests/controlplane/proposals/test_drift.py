"""Drift must hold for a time before it ends a proposal or an execution; an outage passes."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Execution, Node, Proposal, Stream
from controlplane.policies.auto_approval import decide_auto_approval
from controlplane.policies.settings import PolicySettings
from controlplane.proposals import decisions
from controlplane.proposals.drift import Drift, observe_drift
from controlplane.proposals.executions import progression
from tests.support.execution import begun, carried_out, ready, scattered
from tests.support.policies import set_policy

pytestmark = pytest.mark.django_db
HOLD_S = PolicySettings().drift_hold_s


def factor(by: float) -> None:
    """Multiply all rates."""
    for stream in Stream.objects.all():
        Stream.objects.filter(pk=stream.pk).update(rate=stream.weight * by)


def observed(proposal: Proposal, moments: list[datetime]) -> list[Drift]:
    return [observe_drift(proposal, now=moment) for moment in moments]


def every(seconds: float, until: float) -> list[datetime]:
    start = timezone.now()
    return [start + timedelta(seconds=n * seconds) for n in range(int(until / seconds) + 1)]


def test_rates_that_differ_for_the_time_of_the_policy_make_it_stale(
    operator: Actor, sf: Cluster
) -> None:
    proposal = ready(operator, scattered(operator, sf))
    factor(3)
    drifts = observed(proposal, every(20, HOLD_S))
    assert [drift.stale for drift in drifts] == [False] * (len(drifts) - 1) + [True]
    assert {drift.drifting_since for drift in drifts} == {drifts[0].drifting_since}
    assert not any(drift.changed for drift in drifts)


def test_rates_that_recover_start_again(operator: Actor, sf: Cluster) -> None:
    proposal = ready(operator, scattered(operator, sf))
    moments = every(20, 2 * HOLD_S)
    factor(3)
    observed(proposal, moments[:10])
    factor(1 / 3)
    assert not observe_drift(proposal, now=moments[10]).exceeded
    proposal.refresh_from_db()
    assert proposal.drifting_since is None
    factor(3)
    assert not any(drift.stale for drift in observed(proposal, moments[11:20]))


def test_drift_that_nobody_observed_does_not_count(operator: Actor, sf: Cluster) -> None:
    """All workers were away for the time of the policy: both ends drift, and nothing is stale."""
    proposal = ready(operator, scattered(operator, sf))
    factor(3)
    first, last = every(HOLD_S + 1, HOLD_S + 1)
    observe_drift(proposal, now=first)
    drift = observe_drift(proposal, now=last)
    assert (bool(drift.exceeded), drift.stale, drift.lasted_s) == (True, False, 0.0)


def test_drift_without_samples_does_not_count(operator: Actor, sf: Cluster) -> None:
    """The driver is away: its last rates are not an observation."""
    proposal = ready(operator, scattered(operator, sf))
    factor(3)
    moments = every(20, 2 * HOLD_S)
    Cluster.objects.update(last_sample_at=moments[0] - timedelta(seconds=60))
    assert not any(drift.stale for drift in observed(proposal, moments))
    Cluster.objects.update(last_sample_at=moments[-1])
    assert observe_drift(proposal, now=moments[-1]).lasted_s == 0.0


def test_what_people_change_is_stale_immediately(operator: Actor, sf: Cluster) -> None:
    proposal = ready(operator, scattered(operator, sf))
    Node.objects.filter(index=0).update(capacity=250.0)
    drift = observe_drift(proposal)
    assert (drift.stale, drift.changed) == (True, True)


def test_a_proposal_that_drifts_and_keeps_its_gain_can_be_approved_by_people(
    approver: Actor, sf: Cluster
) -> None:
    """No policy approves it; in an overload rates change, and a plan is needed at once."""
    set_policy(sf, cluster_moves=2, auto_kinds=["placement"], auto_gain=0.0, auto_moves=100)
    proposal = ready(approver, scattered(approver, sf))
    assert decide_auto_approval(proposal).code == "allowed"
    factor(3)
    observe_drift(proposal)
    assert decide_auto_approval(proposal).code == "drifting"
    decisions.approve(approver, proposal, proposal.seal)
    execution = carried_out(proposal)
    assert (proposal.state, execution.steps.count()) == ("executing", 1)


def test_an_approved_plan_waits_while_its_gain_is_lost(approver: Actor, sf: Cluster) -> None:
    proposal = ready(approver, scattered(approver, sf))
    decisions.approve(approver, proposal, proposal.seal)
    kept = proposal.review
    for lost, state in ((0.9, "approved"), (0.0, "executing")):
        Proposal.objects.update(review={**kept, "gain_lost": lost})
        progression.advance(proposal.pk)
        proposal.refresh_from_db()
        assert proposal.state == state
        assert Execution.objects.exists() == (state == "executing")


def test_an_execution_waits_while_it_drifts_and_is_done_afterwards(
    approver: Actor, sf: Cluster
) -> None:
    set_policy(sf, cluster_moves=2)
    proposal = begun(approver, scattered(approver, sf))
    factor(3)
    execution = carried_out(proposal)
    assert (proposal.state, execution.steps.count()) == ("executing", 1)
    assert execution.waits
    assert proposal.drifting_since is not None
    factor(1 / 3)
    execution = carried_out(proposal)
    assert (proposal.state, execution.waits) == ("done", "")
    assert proposal.drifting_since is None
