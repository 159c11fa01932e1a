"""Cancelling and rejecting proposals."""

from django.db import transaction
from django.utils import timezone

from controlplane.errors import Conflict, Invalid
from controlplane.models import Proposal
from controlplane.services import audit
from controlplane.services.access import Actor, require_operator
from controlplane.services.proposals.telling import tell


def cancel(actor: Actor, proposal: Proposal, reason: str = "") -> Proposal:
    """Stop the computing of a proposal. Raises `Forbidden`, `Conflict` if it does not compute."""
    return _decide(actor, proposal, Proposal.State.COMPUTING, "proposal.cancel", reason)


def reject(actor: Actor, proposal: Proposal, reason: str) -> Proposal:
    """Reject a ready proposal. Raises `Forbidden`, `Invalid` without a reason, `Conflict`."""
    require_operator(actor)
    if not reason.strip():
        raise Invalid({"reason": ["Say why, for those who ask later"]})
    return _decide(actor, proposal, Proposal.State.READY, "proposal.reject", reason.strip())


@transaction.atomic
def _decide(
    actor: Actor, proposal: Proposal, expected: Proposal.State, action: str, reason: str
) -> Proposal:
    require_operator(actor)
    claimed = Proposal.objects.filter(pk=proposal.pk, state=expected)
    changed = claimed.update(
        state=Proposal.State.REJECTED, decided_by=actor.name, decided_at=timezone.now()
    )
    proposal.refresh_from_db()
    if changed != 1:
        told = f"The proposal is {proposal.state}, not {expected.value}"
        raise Conflict(f"not_{expected.value}", told, {"state": proposal.state})
    audit.record(
        actor,
        action,
        str(proposal),
        cluster=proposal.cluster,
        reason=reason,
        before={"state": expected},
        after={"state": proposal.state},
    )
    tell(proposal, f"{proposal.state} by {actor.name}")
    return proposal
