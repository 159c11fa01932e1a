"""Drift must hold for a time before it ends a proposal or an execution; an outage passes."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Execution, Proposal, Stream
from controlplane.policies.auto_approval import decide_auto_approval
from controlplane.policies.settings import PolicySettings
from controlplane.proposals import decisions
from controlplane.proposals.drift import observe_drift
from controlplane.proposals.executions import progression
from controlplane.proposals.review import still_helps
from tests.support.execution import begun, carried_out, ready, scattered
from tests.support.policies import set_policy

pytestmark = pytest.mark.django_db
# What decides whether the rest of an execution goes on.
REST = "controlplane.proposals.executions.progression.still_helps"


def factor(by: float) -> None:
    """Multiply all rates."""
    for stream in Stream.objects.all():
        Stream.objects.filter(pk=stream.pk).update(rate=stream.weight * by)


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
    # For long, too: what still helps goes on.
    now = timezone.now()
    Proposal.objects.update(drifting_since=now - timedelta(hours=1), drift_seen_at=now)
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
    # Another process is ahead the first time: nothing is closed.
    monkeypatch.setattr(progression, "mark_stale", lambda *_: False)
    assert carried_out(proposal).finished_at is None
    assert proposal.state == "executing"
    monkeypatch.undo()
    monkeypatch.setattr(REST, lambda *_: (False, 0.0))
    assert carried_out(proposal).finished_at is not None
    assert proposal.state == "stale"


def test_the_rest_helps_if_it_improves_what_the_plan_improves_most(
    operator: Actor, sf: Cluster
) -> None:
    proposal = ready(operator, scattered(operator, sf))
    assert still_helps(proposal, 0, PolicySettings())[0]
    Proposal.objects.update(before=proposal.after, after=proposal.before)
    proposal.refresh_from_db()
    assert not still_helps(proposal, 0, PolicySettings())[0], "it was to make it worse"
