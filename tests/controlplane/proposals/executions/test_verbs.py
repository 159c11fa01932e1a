"""Which operations a person may apply to a proposal, and what a manual start queues."""

from typing import Any

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Forbidden, NotFound
from controlplane.events.task_names import ADVANCE
from controlplane.models import Cluster, Proposal
from controlplane.plans.proposal_states import SAID, State
from controlplane.proposals import decisions
from controlplane.proposals.executions import progression
from controlplane.proposals.executions.control import (
    ANEW_FROM,
    apply_verb,
    may_request_again,
    offered,
    verb_at,
)
from tests.support.cluster import actor
from tests.support.execution import execution_row, ready, scattered
from tests.support.policies import set_policy

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("state", list(State))
def test_operators_may_request_a_plan_again_that_does_not_run(
    operator: Actor, sf: Cluster, state: str
) -> None:
    proposal = Proposal(cluster=sf, state=state)
    assert may_request_again(operator, proposal) is (state in ANEW_FROM)
    assert may_request_again(actor("viewer", "a-viewer"), proposal) is False


def test_each_operation_has_its_path() -> None:
    for verb in SAID:
        assert verb_at(verb.path) == verb
    with pytest.raises(NotFound):
        verb_at("explode")


def test_a_missing_role_precedes_all_other_errors(sf: Cluster) -> None:
    proposal = execution_row(sf).proposal
    for verb in SAID:
        with pytest.raises(Forbidden):
            apply_verb(actor("", f"nobody-{verb.path}"), proposal, verb)


def test_a_start_and_a_way_back_are_offered_if_there_is_one(sf: Cluster) -> None:
    approver, execution = actor("approver"), execution_row(sf)
    proposal = execution.proposal
    for state in (State.EXECUTING, State.PAUSED, State.STOPPED):
        proposal.state = state
        assert "roll back" not in {verb.name for verb in offered(approver, proposal)}
    type(execution).objects.update(done=1)
    assert "roll back" in {verb.name for verb in offered(approver, proposal)}
    proposal.state = State.APPROVED
    assert "begin" not in {verb.name for verb in offered(approver, proposal)}
    set_policy(sf, starts=False)
    assert "begin" in {verb.name for verb in offered(approver, proposal)}


def test_a_manual_start_queues_the_first_step(
    approver: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_policy(sf, starts=False)
    proposal = ready(approver, scattered(approver, sf))
    decisions.approve(approver, proposal, proposal.seal)
    queued: list[Any] = []
    monkeypatch.setattr(progression, "send_on_commit", lambda *task: queued.append(task))
    progression.begin(approver, proposal, proposal.seal)
    assert queued == [(ADVANCE, proposal.pk)]
