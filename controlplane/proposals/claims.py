"""Claims of workers on waiting proposals: in the order of requests, within the computing slots."""

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from controlplane.events.task_names import COMPUTE_PROPOSAL, send_on_commit
from controlplane.models import Proposal

# The worker writes a heartbeat every second, whatever its child does; a database may be locked.
LOST_AFTER: Final = timedelta(seconds=30)
# A proposal that has ended so many workers would end the next one, too.
MAX_ATTEMPTS: Final = 3
# Until the next message, so that messages do not accumulate without a worker.
_MESSAGE_EXPIRES_S: Final = 10.0


def waiting() -> QuerySet[Proposal]:
    """Return the proposals that no worker has claimed, in their order."""
    rows = Proposal.objects.filter(state=Proposal.State.COMPUTING, beat_at=None)
    return rows.order_by("requested_at", "pk")


def claimed() -> QuerySet[Proposal]:
    """Return the proposals that workers compute now."""
    rows = Proposal.objects.filter(state=Proposal.State.COMPUTING, beat_at__isnull=False)
    return rows.order_by("started_at", "pk")


def owned(proposal: Proposal) -> QuerySet[Proposal]:
    """Return the row of a claimed proposal while the claim holds."""
    return Proposal.objects.filter(
        pk=proposal.pk, state=Proposal.State.COMPUTING, attempts=proposal.attempts
    )


def claim(proposal_id: int, slot: int | None = None) -> Proposal | None:
    """Return the proposal if this process has claimed it; without a slot, outside of all slots.

    Raises `IntegrityError` if the slot is occupied.
    """
    now = timezone.now()
    rows = waiting().filter(pk=proposal_id).order_by()
    with transaction.atomic():
        changed = rows.update(
            attempts=F("attempts") + 1, started_at=now, beat_at=now, slot=slot, progress=0.0
        )
    if changed != 1:
        return None
    return Proposal.objects.select_related("cluster").filter(pk=proposal_id).first()


def claim_next() -> Proposal | None:
    """Return the proposal that waits longest, claimed; None if none waits or no slot is free."""
    while (slot := _free_slot()) is not None:
        proposal_id = waiting().values_list("pk", flat=True).first()
        if proposal_id is None:
            return None
        try:
            proposal = claim(proposal_id, slot)
        except IntegrityError:
            # Another worker has taken the slot.
            continue
        if proposal is not None:
            return proposal
    return None


def wake_next() -> None:
    """Send a message for the next waiting proposal if a slot is free."""
    proposal_id = waiting().values_list("pk", flat=True).first()
    if proposal_id is not None and _free_slot() is not None:
        send_on_commit(COMPUTE_PROPOSAL, proposal_id, expires_s=_MESSAGE_EXPIRES_S)


def give_up_lost(now: datetime) -> list[Proposal]:
    """Queue the proposals of lost workers again; return those with too many attempts."""
    lost = claimed().filter(beat_at__lt=now - LOST_AFTER)
    again = lost.filter(attempts__lt=MAX_ATTEMPTS).order_by()
    again.update(beat_at=None, slot=None, progress=0.0)
    return list(lost.filter(attempts__gte=MAX_ATTEMPTS).select_related("cluster"))


def _free_slot() -> int | None:
    taken = set(claimed().values_list("slot", flat=True))
    return next((slot for slot in range(settings.COMPUTING_SLOTS) if slot not in taken), None)
