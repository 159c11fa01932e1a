"""Refused actions in the audit log: what a user tried without the role for it.

The first refusals of a user have an entry each; others are counted, and recorded in one entry per
user when the hour is over. So nobody fills the audit log by what Weir refuses.
"""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth.models import User
from django.db import OperationalError, transaction
from django.db.models import F
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor
from controlplane.models import Cluster, FailedAttempts

PERIOD: Final = timedelta(hours=1)
# Entries of its own that a user has in a period, each of another operation.
MAX_ENTRIES: Final = 5
ACTION: Final = "access.refused"
_KIND: Final = FailedAttempts.Kind.REFUSAL
_OTHERS: Final = "others"
_MAX_SUBJECT: Final = 150


def record(
    actor: Actor, operation: str, label: str, *, cluster: Cluster | None = None, reason: str = ""
) -> None:
    """Record or count a refused action of a user; anonymous clients have no entry.

    `operation`: what was tried, without the names of rows; `label`: with them. `reason`: the
    message to the client.
    """
    if not isinstance(actor.user, User):
        return
    try:
        with transaction.atomic():
            if _is_first(actor.user.pk, operation):
                audit.record(actor, ACTION, label, cluster=cluster, reason=reason)
    except OperationalError:
        # The disk is full or the database locked: the request is refused all the same.
        return


def housekeep(now: datetime, actor: Actor) -> int:
    """Record the counted refusals of ended periods, one entry per user; return deleted rows."""
    with transaction.atomic():
        kind = FailedAttempts.objects.select_for_update().filter(kind=_KIND)
        over = list(kind.filter(since__lt=now - PERIOD))
        counts: dict[int, int] = defaultdict(int)
        for row in over:
            counts[int(row.subject.partition(" ")[0])] += row.unrecorded
        users = User.objects.in_bulk(list(counts))
        for pk, count in sorted(counts.items()):
            name = users[pk].username if pk in users else f"{pk}, deleted"
            if count:
                audit.record(actor, ACTION, f"user {name}", after={"refusals": count})
        return kind.filter(pk__in=[row.pk for row in over]).delete()[0]


def _is_first(user: int, operation: str) -> bool:
    """Count a refusal; return True if it has an entry of its own."""
    now = timezone.now()
    own = FailedAttempts.objects.filter(kind=_KIND, subject__startswith=f"{user} ")
    subject = f"{user} {operation}"[:_MAX_SUBJECT]
    if _count(subject, now):
        return False
    if own.count() >= MAX_ENTRIES:
        others = f"{user} {_OTHERS}"
        if not _count(others, now):
            _add(others, now, unrecorded=1)
        return False
    return _add(subject, now, unrecorded=0)


def _count(subject: str, now: datetime) -> int:
    rows = FailedAttempts.objects.filter(kind=_KIND, subject=subject, address="")
    return rows.update(last_at=now, attempts=F("attempts") + 1, unrecorded=F("unrecorded") + 1)


def _add(subject: str, now: datetime, *, unrecorded: int) -> bool:
    """Create the row of a count; return False if a parallel request was first."""
    _, is_new = FailedAttempts.objects.get_or_create(
        kind=_KIND,
        subject=subject,
        address="",
        defaults={"since": now, "last_at": now, "attempts": 1, "unrecorded": unrecorded},
    )
    return is_new
