"""Visits of the fleet page by users, and what happened since the last one."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth.models import User
from django.db.models import Count, Q

from controlplane.access.roles import Actor
from controlplane.models import Alert, Execution, LedgerEntry, Proposal, Visit
from controlplane.policies.planner_record import median_error
from controlplane.telemetry.measures import dropped_since

# A later request begins another visit.
_PAUSE: Final = timedelta(minutes=30)
# The end of a visit is stored as often, so that the page of each second writes nothing.
_STORED: Final = timedelta(minutes=1)
# The first visit shows this time, later ones at most the longest.
FIRST: Final = timedelta(hours=24)
LONGEST: Final = timedelta(days=7)


@dataclass(frozen=True)
class ChangesSinceVisit:
    """What happened on clusters since `start`; `is_visit`: since the user's last visit.

    `done`: plans, of which `automatic` were approved by the policy; `error`: the median
    error of their figures against the approved ones, None without; `dropped`: records.
    """

    start: datetime
    is_visit: bool
    raised: int
    cleared: int
    done: int
    automatic: int
    rolled_back: int
    error: float | None
    dropped: int


def last_visit(actor: Actor, now: datetime) -> datetime | None:
    """Return the end of the user's last visit, None before it; the present visit is recorded."""
    if not isinstance(actor.user, User):
        return None
    row, created = Visit.objects.get_or_create(user=actor.user, defaults={"seen_at": now})
    if created or now - row.seen_at < _STORED:
        return row.last_end
    if now - row.seen_at > _PAUSE:
        row.last_end = row.seen_at
    row.seen_at = now
    row.save(update_fields=["last_end", "seen_at"])
    return row.last_end


def changes_since(
    clusters: Collection[int], visit: datetime | None, now: datetime
) -> ChangesSinceVisit:
    """Return what happened on clusters since a visit, of the last day without one."""
    start = now - FIRST if visit is None else max(visit, now - LONGEST)
    alerts = Alert.objects.filter(cluster__in=clusters, fired_at__isnull=False).aggregate(
        raised=Count("pk", filter=Q(fired_at__gte=start)),
        cleared=Count("pk", filter=Q(cleared_at__gte=start)),
    )
    ended = Execution.objects.filter(cluster__in=clusters, finished_at__gte=start).aggregate(
        done=Count("pk", filter=Q(proposal__state=Proposal.State.DONE)),
        automatic=Count(
            "pk", filter=Q(proposal__state=Proposal.State.DONE, proposal__approved_by="policy")
        ),
        rolled_back=Count("pk", filter=Q(proposal__state=Proposal.State.ROLLED_BACK)),
    )
    entries = LedgerEntry.objects.filter(
        cluster__in=clusters, at__gte=start, outcome=LedgerEntry.Outcome.DONE
    )
    return ChangesSinceVisit(
        start=start,
        is_visit=visit is not None,
        raised=alerts["raised"],
        cleared=alerts["cleared"],
        done=ended["done"],
        automatic=ended["automatic"],
        rolled_back=ended["rolled_back"],
        error=median_error(entries),
        dropped=dropped_since(clusters, start),
    )
