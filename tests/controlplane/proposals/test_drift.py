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
from controlplane.proposals.review import still_helps
from tests.support.execution import begun, carried_out, ready, scattered
from tests.support.policies import set_policy

pytestmark = pytest.mark.django_db
HOLD_S = PolicySettings().drift_hold_s
# What decides whether the rest of an execution goes on.
REST = "controlplane.proposals.executions.progression.still_helps"


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
    carried_out(proposal)
    assert proposal.state == "done", "all of its steps help as loads are now"


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


def test_an_execution_waits_while_its_rest_does_not_help(
    approver: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_policy(sf, cluster_moves=2)
    proposal = begun(approver, scattered(approver, sf))
    factor(3)
    monkeypatch.setattr(REST, lambda *_: (False, 0.0))
    execution = carried_out(proposal)
    assert (proposal.state, execution.steps.count()) == ("executing", 1)
    assert execution.waits
    assert proposal.drifting_since is not None
    monkeypatch.setattr(REST, still_helps)
    execution = carried_out(proposal)
    assert (proposal.state, execution.waits) == ("done", "")


def test_an_execution_whose_rest_does_not_help_ends_after_the_hold_time_of_alerts(
    approver: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_policy(sf, cluster_moves=2, alert_hold_s=30)
    proposal = begun(approver, scattered(approver, sf))
    factor(3)
    monkeypatch.setattr(REST, lambda *_: (False, 0.0))
    carried_out(proposal)
    now = timezone.now()
    Proposal.objects.update(drifting_since=now - timedelta(seconds=31), drift_seen_at=now)
    carried_out(proposal)
    assert proposal.state == "stale"


def test_the_rest_helps_if_it_improves_what_the_plan_improves_most(
    operator: Actor, sf: Cluster
) -> None:
    proposal = ready(operator, scattered(operator, sf))
    assert still_helps(proposal, 0, PolicySettings())[0]
    Proposal.objects.update(before=proposal.after, after=proposal.before)
    proposal.refresh_from_db()
    assert not still_helps(proposal, 0, PolicySettings())[0], "it was to make it worse"
