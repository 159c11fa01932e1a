"""Routine actions by tokens: beyond a number per hour they are counted, not logged one by one.

A program that submits queries every second would fill the audit log: 7,000 entries per hour, in
which nobody sees what people did. Actions in a session are never counted; of a token, the first of
an hour have an entry each, and the others one entry with their number when the hour is over.
"""

from datetime import datetime, timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, RoutineActions

# What programs do all the time; decisions, changes of rights and settings are never among them.
ROUTINE: Final = frozenset({"query.submit", "query.end", "dead_letters.replay"})
PERIOD: Final = timedelta(hours=1)
# Entries of its own that a token has per action, cluster and hour.
LOGGED: Final = 20


def is_counted(actor: Actor, action: str, subject: str, cluster: Cluster | None) -> bool:
    """Count a routine action by a token; return True if it needs no entry of its own."""
    if actor.token is None or cluster is None or action not in ROUTINE:
        return False
    now = timezone.now()
    key = {
        "cluster": cluster, "token": actor.token, "action": action,
        "period": now.replace(minute=0, second=0, microsecond=0),
    }  # fmt: skip
    rows = RoutineActions.objects.filter(**key)
    if not _add(rows, subject, now):
        try:
            with transaction.atomic():
                RoutineActions.objects.create(
                    **key, actor=actor.name, address=actor.address, count=1,
                    first_at=now, last_at=now, last_object=subject[:200],
                )  # fmt: skip
        except IntegrityError:
            # Another request has created the row meanwhile.
            _add(rows, subject, now)
    return rows.values_list("count", flat=True).get() > LOGGED


def _add(rows: QuerySet[RoutineActions], subject: str, now: datetime) -> bool:
    changed = rows.update(count=F("count") + 1, last_at=now, last_object=subject[:200])
    return changed == 1
