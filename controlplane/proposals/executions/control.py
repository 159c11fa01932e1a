"""Control of executions: pause, resume, stop and roll back.

API, pages and CLI apply verbs to proposals; the path of a verb is its name with hyphens: roll-back.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor, require, require_operator
from controlplane.errors import Conflict, Invalid, NotFound
from controlplane.events.task_names import ADVANCE, send_on_commit
from controlplane.models import Execution, LedgerEntry, Proposal
from controlplane.plans.proposal_states import BY_NAME, ENDED, SAID, State, Verb
from controlplane.policies.store import policy_of
from controlplane.proposals import decisions, transitions
from controlplane.proposals.executions import progression
from controlplane.proposals.executions.progression import translate_integrity_error
from controlplane.proposals.executions.step_limits import columns, first_cap
from controlplane.proposals.transitions import move_on, notify, role_for


@transaction.atomic
def pause(actor: Actor, proposal: Proposal, reason: str = "") -> Proposal:
    """Pause an execution after the step in progress; `add_reason` adds a reason afterwards.

    Raises `Forbidden` and `Conflict`, as do all functions here.
    """
    return move_on(actor, proposal, "pause", reason=reason, **_unexplained("pause", reason))


@transaction.atomic
def resume(actor: Actor, proposal: Proposal) -> Proposal:
    """Resume an execution with the next step."""
    move_on(actor, proposal, "resume")
    send_on_commit(ADVANCE, proposal.pk)
    return proposal


@transaction.atomic
def finish_step(actor: Actor, proposal: Proposal, reason: str) -> Proposal:
    """Stop an execution after the step in progress. Raises `Invalid` without a reason."""
    move_on(actor, proposal, "finish step", reason=reason)
    _execution(proposal, last_step=True)
    send_on_commit(ADVANCE, proposal.pk)
    return proposal


@transaction.atomic
def stop(actor: Actor, proposal: Proposal, reason: str = "") -> Proposal:
    """Stop an execution now; the applied actions stay. `add_reason` adds a reason afterwards."""
    move_on(actor, proposal, "stop", reason=reason, **_unexplained("stop", reason))
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
        # What was measured does not hold any more: the end of the rollback is measured again.
        LedgerEntry.objects.filter(proposal=proposal).delete()
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


@transaction.atomic
def add_reason(actor: Actor, proposal: Proposal, reason: str) -> Proposal:
    """Add the reason of the last emergency operation to the audit log.

    Raises `Invalid` without a reason, `Conflict` no_reason_needed if the operation has one.
    """
    require_operator(actor, proposal.cluster)
    if not reason.strip():
        raise Invalid({"reason": ["Enter a reason"]})
    rows = Proposal.objects.select_for_update().filter(pk=proposal.pk)
    verb = rows.values_list("unexplained", flat=True).get()
    if not verb:
        raise Conflict("no_reason_needed", "No operation on this proposal waits for a reason")
    rows.update(unexplained="")
    proposal.unexplained = ""
    audit.record(
        actor, f"proposal.{verb}_reason", str(proposal), cluster=proposal.cluster,
        reason=reason.strip(), seal=proposal.seal,
    )  # fmt: skip
    notify(proposal, f"{actor.name} gave a reason for “{verb}”", passing=True)
    return proposal


def _unexplained(verb: str, reason: str) -> dict[str, str]:
    """Return the column that asks for the reason of an emergency operation."""
    return {"unexplained": "" if reason.strip() else verb}


def _execution(proposal: Proposal, **changed: Any) -> None:
    if Execution.objects.filter(proposal=proposal).update(**changed) != 1:
        raise NotFound("execution of proposal", proposal.pk)


# States in which the same plan can be requested again; the request changes no state.
ANEW_FROM: Final = (State.READY, *ENDED)

# Actor, proposal, seal, reason, number of applicable actions.
_Apply = Callable[[Actor, Proposal, str, str, int | None], Proposal]
_FUNCTIONS: Final[Mapping[str, _Apply]] = {
    "cancel": lambda actor, row, _, reason, __: decisions.cancel(actor, row, reason),
    "reject": lambda actor, row, _, reason, __: decisions.reject(actor, row, reason),
    "approve": decisions.approve,
    "withdraw": lambda actor, row, _, reason, __: decisions.withdraw(actor, row, reason),
    "begin": lambda actor, row, seal, _, __: progression.begin(actor, row, seal),
    "pause": lambda actor, row, _, reason, __: pause(actor, row, reason),
    "resume": lambda actor, row, _, __, ___: resume(actor, row),
    "finish step": lambda actor, row, _, reason, __: finish_step(actor, row, reason),
    "stop": lambda actor, row, _, reason, __: stop(actor, row, reason),
    "roll back": lambda actor, row, seal, reason, _: roll_back(actor, row, seal, reason),
}


def verb_at(path: str) -> Verb:
    """Return the verb of a path; raises `NotFound`."""
    for verb in SAID:
        if verb.path == path:
            return verb
    raise NotFound("verb", path)


def apply_verb(
    actor: Actor,
    proposal: Proposal,
    verb: Verb,
    *,
    seal: str = "",
    reason: str = "",
    applicable: int | None = None,
) -> Proposal:
    """Apply a verb; `applicable`: as in `decisions.approve`.

    Raises `Forbidden`, `Invalid` without a required reason, `Conflict`.
    """
    # A missing role takes precedence over other errors.
    require(actor, role_for(verb, proposal), proposal.cluster)
    return _FUNCTIONS[verb.name](actor, proposal, seal, reason, applicable)


def offered(actor: Actor, proposal: Proposal) -> list[Verb]:
    """Return the verbs that the actor may apply now.

    Omits "roll back" if no action was applied, and "begin" if the policy starts proposals.
    """
    allowed = transitions.allowed_verbs(actor, proposal)
    if policy_of(proposal.cluster).starts:
        allowed = [verb for verb in allowed if verb.name != "begin"]
    if not any(verb.name == "roll back" for verb in allowed):
        return allowed
    moved = Execution.objects.filter(proposal=proposal, done__gt=0).exists()
    return [verb for verb in allowed if moved or verb.name != "roll back"]


def may_request_again(actor: Actor, proposal: Proposal) -> bool:
    """Return whether the actor may request the same plan again."""
    return proposal.state in ANEW_FROM and actor.may("operator", proposal.cluster_id)
