"""Blackouts: time ranges in which nothing starts automatically.

Cron lines have five fields, in UTC, as Debian's cron reads them (the cronsim library).
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from cronsim import CronSim, CronSimError
from django.db import transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, require
from controlplane.errors import Fields, Invalid, NotFound
from controlplane.events.publish import announce, event
from controlplane.models import Blackout, Cluster

CRON_FIELDS: Final = 5
# For longer blackouts, the policy switches the watch loops off.
MOST_MINUTES: Final = 7 * 24 * 60
# Every cycle of the watch loops evaluates all blackouts of a cluster.
MOST: Final = 100


def in_blackout(cluster: Cluster, moment: datetime) -> Blackout | None:
    """Return the blackout in effect at a moment, the last one to end; None without one."""
    held = [
        (until, row)
        for row in Blackout.objects.filter(cluster=cluster)
        if (until := blackout_until(row, moment))
    ]
    return max(held, key=lambda pair: pair[0])[1] if held else None


def blackout_until(row: Blackout, moment: datetime) -> datetime | None:
    """Return when a blackout in effect at a moment ends, None if it is not in effect."""
    if not row.cron:
        assert row.starts_at is not None
        assert row.ends_at is not None
        return row.ends_at if row.starts_at <= moment < row.ends_at else None
    # The last start before the moment: if its minutes are over, so are those of earlier starts.
    try:
        started = next(
            CronSim(row.cron, moment.astimezone(UTC) + timedelta(microseconds=1), reverse=True)
        )
    except (StopIteration, CronSimError):
        return None
    until = started + timedelta(minutes=row.minutes)
    return until if moment < until else None


def add_blackout(
    actor: Actor,
    cluster: Cluster,
    *,
    reason: str,
    cron: str = "",
    minutes: int = 0,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
) -> Blackout:
    """Add a blackout: `minutes` after each time of a cron line, or a time range.

    Requires an admin of the cluster. Raises `Forbidden`, `Invalid` per field.
    """
    require(actor, ADMIN, cluster)
    cron = " ".join(cron.split())
    faults = _cron_faults(cron, minutes) if cron else _range_faults(minutes, starts_at, ends_at)
    if cron and (starts_at or ends_at):
        faults["cron"] = ["Enter a cron line or a time range, not both"]
    if not reason.strip():
        faults["reason"] = ["Enter a reason"]
    if not faults and Blackout.objects.filter(cluster=cluster).count() >= MOST:
        faults["cron" if cron else "starts_at"] = [f"There are {MOST} already: remove one first"]
    if faults:
        raise Invalid(faults)
    return _add(actor, cluster, Blackout(
        cluster=cluster, cron=cron, minutes=minutes if cron else 0, starts_at=starts_at,
        ends_at=ends_at, reason=reason.strip()[:300], owner=actor.name, created_at=timezone.now(),
    ))  # fmt: skip


@transaction.atomic
def _add(actor: Actor, cluster: Cluster, row: Blackout) -> Blackout:
    row.save()
    audit.record(
        actor, "blackout.add", str(row), cluster=cluster, reason=row.reason, after=_plain(row)
    )
    announce(cluster.pk, event("policy", f"{actor.name} added a blackout: {row.reason}"))
    return row


@transaction.atomic
def remove_blackout(actor: Actor, cluster: Cluster, pk: int, reason: str = "") -> None:
    """Delete a blackout. Raises `Forbidden`, `NotFound`."""
    require(actor, ADMIN, cluster)
    row = Blackout.objects.filter(cluster=cluster, pk=pk).first()
    if row is None or Blackout.objects.filter(cluster=cluster, pk=pk).delete()[0] != 1:
        raise NotFound("blackout", pk)
    audit.record(
        actor, "blackout.remove", str(row), cluster=cluster, reason=reason, before=_plain(row)
    )
    announce(cluster.pk, event("policy", f"{actor.name} removed a blackout: {row.reason}"))


def cron_text(cron: str) -> str:
    """Return the description of a cron line, or the line itself if it has none."""
    try:
        return CronSim(cron, datetime(2000, 1, 1, tzinfo=UTC)).explain()
    except (CronSimError, ValueError):
        return cron


def _cron_faults(cron: str, minutes: int) -> Fields:
    faults: Fields = {}
    try:
        fields = len(cron.split())
        if fields != CRON_FIELDS:
            raise CronSimError(f"{fields} fields instead of {CRON_FIELDS}")
        next(CronSim(cron, timezone.now()))
    except CronSimError as bad:
        faults["cron"] = [f"{str(bad)[:80]}: minute hour day month weekday, as 30 8 * * 1-5"]
    except StopIteration:
        faults["cron"] = ["It matches no time"]
    if (
        isinstance(minutes, bool)
        or not isinstance(minutes, int)
        or not 1 <= minutes <= MOST_MINUTES
    ):
        faults["minutes"] = [f"Must be a whole number from 1 to {MOST_MINUTES:,}"]
    return faults


def _range_faults(minutes: int, starts_at: datetime | None, ends_at: datetime | None) -> Fields:
    if minutes:
        return {"cron": ["Minutes need a cron line"]}
    if starts_at is None or ends_at is None:
        missing = "starts_at" if starts_at is None else "ends_at"
        return {missing: ["Enter start and end of the range, or a cron line"]}
    for name, moment in (("starts_at", starts_at), ("ends_at", ends_at)):
        if timezone.is_naive(moment):
            return {name: ["Enter a time zone"]}
    if ends_at <= starts_at:
        return {"ends_at": ["Must be after the start"]}
    if ends_at <= timezone.now():
        return {"ends_at": ["Must be in the future"]}
    return {}


def _plain(row: Blackout) -> dict[str, object]:
    return {
        "cron": row.cron,
        "minutes": row.minutes,
        "starts_at": row.starts_at.isoformat() if row.starts_at else None,
        "ends_at": row.ends_at.isoformat() if row.ends_at else None,
        "reason": row.reason,
        "owner": row.owner,
    }
