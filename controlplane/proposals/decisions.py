"""Decisions of people about proposals: cancel, reject, approve, withdraw the approval."""

from django.db import transaction
from django.utils import timezone

from controlplane.access.roles import Actor, Automatic, require
from controlplane.events.task_names import ADVANCE, send_on_commit
from controlplane.models import Proposal
from controlplane.policies.store import policy_of
from controlplane.proposals.approval_lock import require_unlocked
from controlplane.proposals.derivation import supersede_rivals
from controlplane.proposals.staleness import refuse_if_stale
from controlplane.proposals.transitions import approver_role, move_on


@transaction.atomic
def cancel(actor: Actor, proposal: Proposal, reason: str = "") -> Proposal:
    """Cancel the computation of a proposal. Raises `Forbidden`, `Conflict`."""
    return move_on(actor, proposal, "cancel", reason=reason)


@transaction.atomic
def reject(actor: Actor, proposal: Proposal, reason: str) -> Proposal:
    """Reject a ready proposal. Raises `Forbidden`, `Invalid` without a reason, `Conflict`."""
    return move_on(actor, proposal, "reject", reason=reason)


def approve(
    actor: Actor, proposal: Proposal, seal: str, reason: str = "", applicable: int | None = None
) -> Proposal:
    """Approve the actions that the seal names; the policy may start them at once.

    `applicable`: how many of them the approver expects to be applied, None for any number. Raises
    `Forbidden`, and `Conflict` with code not_allowed, wrong_seal, own_proposal, stale (data: the
    drift; it marks the proposal as stale), or those of `approval_lock.require_unlocked`.
    """
    if not isinstance(actor, Automatic):
        require(actor, approver_role(proposal), proposal.cluster)
    refuse_if_stale(proposal)
    if proposal.state == Proposal.State.READY:
        policy, count = policy_of(proposal.cluster), len(proposal.actions)
        require_unlocked(proposal.review, policy, count, applicable)
    with transaction.atomic():
        move_on(
            actor, proposal, "approve", named=seal, reason=reason,
            approved_by=actor.name, approved_at=timezone.now(),
        )  # fmt: skip
        supersede_rivals(proposal)
        if policy_of(proposal.cluster).starts:
            send_on_commit(ADVANCE, proposal.pk)
    return proposal


@transaction.atomic
def withdraw(actor: Actor, proposal: Proposal, reason: str) -> Proposal:
    """Withdraw an approval before the start. Raises `Forbidden`, `Invalid`, `Conflict`."""
    return move_on(actor, proposal, "withdraw", reason=reason, approved_by="", approved_at=None)
