"""Decisions of people about proposals: cancel, reject, approve, withdraw the approval."""

from django.db import transaction
from django.utils import timezone

from controlplane.access.roles import Actor, Automatic, require
from controlplane.models import Proposal
from controlplane.policies.store import policy_of
from controlplane.proposals.derivation import supersede_rivals
from controlplane.proposals.staleness import refuse_if_stale
from controlplane.proposals.transitions import approver_role, move_on
from controlplane.task_names import ADVANCE, send_on_commit


@transaction.atomic
def cancel(actor: Actor, proposal: Proposal, reason: str = "") -> Proposal:
    """Cancel the computation of a proposal. Raises `Forbidden`, `Conflict`."""
    return move_on(actor, proposal, "cancel", reason=reason)


@transaction.atomic
def reject(actor: Actor, proposal: Proposal, reason: str) -> Proposal:
    """Reject a ready proposal. Raises `Forbidden`, `Invalid` without a reason, `Conflict`."""
    return move_on(actor, proposal, "reject", reason=reason)


def approve(actor: Actor, proposal: Proposal, seal: str, reason: str = "") -> Proposal:
    """Approve the actions that the seal names; the policy may start them at once.

    Raises `Forbidden`, and `Conflict` with code not_allowed, wrong_seal, own_proposal, or stale
    (data: the drift); the last one marks the proposal as stale.
    """
    if not isinstance(actor, Automatic):
        require(actor, approver_role(proposal), proposal.cluster)
    refuse_if_stale(proposal)
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
