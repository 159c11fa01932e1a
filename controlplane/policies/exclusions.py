"""Exclusions of queries, nodes and streams from plans, until they expire."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor, Automatic, require_operator
from controlplane.errors import Fields, Invalid, NotFound
from controlplane.events.publish import announce, event
from controlplane.models import Cluster, Exclusion, Query

# An exclusion that is needed for longer is renewed.
LONGEST: Final = timedelta(days=90)
WEIR: Final = Automatic("weir")


def live_exclusions(cluster: Cluster, moment: datetime) -> QuerySet[Exclusion]:
    """Return the exclusions in effect at a moment, the first one to end first."""
    return Exclusion.objects.filter(cluster=cluster, expires_at__gt=moment)


@transaction.atomic
def add_exclusion(
    actor: Actor, cluster: Cluster, kind: str, subject: str, reason: str, expires_at: datetime
) -> Exclusion:
    """Exclude a query, the tasks of a node, or the readers of a stream from plans.

    A second exclusion of a subject replaces owner, reason and end. Requires an operator of the
    cluster. Raises `Forbidden`, `Invalid` per field.
    """
    require_operator(actor, cluster)
    now = timezone.now()
    if faults := _faults(cluster, kind, subject, reason, expires_at, now):
        raise Invalid(faults)
    before = Exclusion.objects.filter(cluster=cluster, kind=kind, subject=subject).first()
    row, _ = Exclusion.objects.update_or_create(
        cluster=cluster,
        kind=kind,
        subject=subject,
        defaults={
            "reason": reason.strip()[:300],
            "owner": actor.name,
            "created_at": now,
            "expires_at": expires_at,
        },
    )
    audit.record(
        actor, "exclusion.add", str(row), cluster=cluster, reason=row.reason,
        before=_plain(before) if before else None, after=_plain(row),
    )  # fmt: skip
    announce(cluster.pk, event("policy", f"{actor.name} excluded {row}"))
    return row


@transaction.atomic
def remove_exclusion(actor: Actor, cluster: Cluster, pk: int, reason: str = "") -> None:
    """Delete an exclusion. Raises `Forbidden`, `NotFound`."""
    require_operator(actor, cluster)
    row = Exclusion.objects.filter(cluster=cluster, pk=pk).first()
    if row is None or Exclusion.objects.filter(cluster=cluster, pk=pk).delete()[0] != 1:
        raise NotFound("exclusion", pk)
    audit.record(
        actor, "exclusion.remove", str(row), cluster=cluster, reason=reason, before=_plain(row)
    )
    announce(cluster.pk, event("policy", f"{actor.name} lifted the exclusion of {row}"))


def prune_exclusions(now: datetime) -> int:
    """Delete expired exclusions, each with an audit entry; return how many."""
    deleted = 0
    for row in Exclusion.objects.filter(expires_at__lte=now).select_related("cluster"):
        with transaction.atomic():
            # Its owner may have renewed it meanwhile.
            if not Exclusion.objects.filter(pk=row.pk, expires_at__lte=now).delete()[0]:
                continue
            audit.record(
                WEIR, "exclusion.expire", str(row), cluster=row.cluster, before=_plain(row)
            )
            message = f"The exclusion of {row} by {row.owner} has expired"
            announce(row.cluster_id, event("policy", message))
        deleted += 1
    return deleted


def _faults(
    cluster: Cluster, kind: str, subject: str, reason: str, expires_at: datetime, now: datetime
) -> Fields:
    faults: Fields = {}
    if kind not in Exclusion.Kind.values:
        faults["kind"] = [f"Must be one of {', '.join(map(str, Exclusion.Kind.values))}"]
    elif not _exists(cluster, kind, subject):
        faults["subject"] = [f"{cluster.name} has no {kind} {subject[:100] or 'without a name'}"]
    if not reason.strip():
        faults["reason"] = ["Enter a reason"]
    if timezone.is_naive(expires_at):
        faults["expires_at"] = ["Enter a time zone"]
    elif not now < expires_at <= now + LONGEST:
        faults["expires_at"] = [f"Must be in the future, within {LONGEST.days} days"]
    return faults


def _exists(cluster: Cluster, kind: str, subject: str) -> bool:
    live = cluster.queries.filter(state__in=(Query.State.PENDING, Query.State.RUNNING))
    rows: dict[str, Any] = {"node": cluster.nodes, "stream": cluster.streams, "query": live}
    return bool(rows[kind].filter(name=subject).exists())


def _plain(row: Exclusion) -> dict[str, object]:
    return {
        "kind": row.kind,
        "subject": row.subject,
        "reason": row.reason,
        "owner": row.owner,
        "expires_at": row.expires_at.isoformat(),
    }
