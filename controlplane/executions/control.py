"""Control of executions: pause, resume, stop and roll back."""

from typing import Any

from django.db import transaction
from django.utils import timezone

from controlplane.access.roles import Actor, require
from controlplane.errors import Conflict, NotFound
from controlplane.executions.startup import translate_integrity_error
from controlplane.executions.step_limits import columns, first_cap
from controlplane.models import Execution, Proposal
from controlplane.plans.proposal_states import BY_NAME
from controlplane.policies.store import policy_of
from controlplane.proposals.transitions import move_on, role_for
from controlplane.task_names import ADVANCE, send_on_commit


@transaction.atomic
def pause(actor: Actor, proposal: Proposal, reason: str) -> Proposal:
    """Pause an execution after the step in progress.

    Raises `Forbidden`, `Invalid` without a reason, and `Conflict`, as do all functions here.
    """
    return move_on(actor, proposal, "pause", reason=reason)


@transaction.atomic
def resume(actor: Actor, proposal: Proposal) -> Proposal:
    """Resume an execution with the next step."""
    move_on(actor, proposal, "resume")
    send_on_commit(ADVANCE, proposal.pk)
    return proposal


@transaction.atomic
def finish_step(actor: Actor, proposal: Proposal, reason: str) -> Proposal:
    """Stop an execution after the step in progress."""
    move_on(actor, proposal, "finish step", reason=reason)
    _execution(proposal, last_step=True)
    send_on_commit(ADVANCE, proposal.pk)
    return proposal


@transaction.atomic
def stop(actor: Actor, proposal: Proposal, reason: str) -> Proposal:
    """Stop an execution now; the applied actions stay."""
    move_on(actor, proposal, "stop", reason=reason)
    _execution(proposal, finished_at=timezone.now(), waits="", not_before=None)
    return proposal


def roll_back(actor: Actor, proposal: Proposal, seal: str, reason: str) -> Proposal:
    """Revert the applied actions step by step, the last one first.

    Raises `Conflict` also if no action was applied (nothing_applied), and during the execution of
    another proposal of the cluster (another_executing).
    """
    require(actor, role_for(BY_NAME["roll back"], proposal), proposal.cluster)
    execution = Execution.objects.filter(proposal=proposal).first()
    if execution is None or not execution.steps.exclude(inverses=[]).exists():
        raise Conflict("nothing_applied", "No action was applied: there is nothing to revert")
    with translate_integrity_error(), transaction.atomic():
        move_on(actor, proposal, "roll back", named=seal, reason=reason)
        _execution(
            proposal,
            direction=Execution.Direction.BACK,
            undone=0,
            last_step=False,
            finished_at=None,
            **columns(first_cap(policy_of(proposal.cluster))),
        )
        send_on_commit(ADVANCE, proposal.pk)
    return proposal


def _execution(proposal: Proposal, **changed: Any) -> None:
    if Execution.objects.filter(proposal=proposal).update(**changed) != 1:
        raise NotFound("execution of proposal", proposal.pk)
