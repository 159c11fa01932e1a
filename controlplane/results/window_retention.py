"""Retention of windows: of archived ones, and of those in Redis that cannot be computed.

A live query keeps archived windows that start within `retention_s` of its newest one; an ended
query keeps its windows for `retention_s` after its end. `retention_windows` bounds both. Deletion
is in bounded steps.

A module of users' functions that a query calls may be missing for a while, so its windows wait in
Redis. They are dropped by the retention of the query: by event time and number while it lives, and
by time after its end.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import redis
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Automatic
from controlplane.catalog.computations import computations_of
from controlplane.events.publish import announce, event
from controlplane.models import AuditEntry, Cluster, Query
from controlplane.results.archive import windows as archive
from controlplane.results.archive.models import ArchivedQuery
from controlplane.wire.query import Computation
from controlplane.wire.results import final_windows
from controlplane.wire.results.places import start_bytes

logger = logging.getLogger(__name__)

ARCHIVER: Final = Automatic("archiver")
ACTION: Final = "query.drop-windows"
# A query is reported once in this time.
_AGAIN: Final = timedelta(days=1)
# Queries of which this process has logged that they cannot be read.
_logged: set[int] = set()
# Windows that one pass deletes at most; the next one continues.
MOST: Final = 50_000
# Queries per statement.
_CHUNK: Final = 500
# A query's oldest windows are searched for once this share of its retention has passed.
_SLACK: Final = 100


def computation_of(query: int) -> Computation | None:
    """Return the computation of a query, None if it cannot be parsed."""
    return readable([query]).get(query)


def readable(queries: Sequence[int]) -> dict[int, Computation]:
    """Return the computations of queries, without those that cannot be parsed."""
    texts = dict(Query.objects.filter(pk__in=queries).values_list("pk", "text"))
    computations, parsed = computations_of(texts), {}
    for query in queries:
        computation = computations.get(query)
        if isinstance(computation, Computation):
            _logged.discard(query)
            parsed[query] = computation
        elif query not in _logged:
            logger.warning("Windows of query %s stay in Redis: %s", query, computation or "gone")
            _logged.add(query)
    return parsed


def drop_until(client: "redis.Redis", cluster: Cluster, query: int, until_ms: int) -> int:
    """Drop the windows that start up to a time; return how many rows of windows Redis had.

    Windows in blocks are dropped with the last window of their block.
    """
    dropped = 0
    while members := final_windows.members_until(client, cluster.slug, query, until_ms):
        final_windows.remove_all(client, cluster.slug, {query: (members, b"")})
        dropped += len(members)
    dropped += final_windows.release(client, cluster.slug, query, until_ms)
    if dropped:
        _report(cluster, Query.objects.get(pk=query), dropped, "older than its retention")
    return dropped


def drop_all(client: "redis.Redis", cluster: Cluster, query: Query) -> None:
    """Drop all windows of an ended query from Redis."""
    extent = final_windows.extent(client, cluster.slug, [query.pk])
    final_windows.drop(client, cluster.slug, query.pk)
    _logged.discard(query.pk)
    if query.pk in extent:
        _report(cluster, query, extent[query.pk][0], "its retention after its end is over")


def _report(cluster: Cluster, query: Query, rows: int, why: str) -> None:
    text = f"Dropped {rows:,} rows of windows of {query.name}, which cannot be computed: {why}"
    logger.warning("%s: %s", cluster.slug, text)
    known = AuditEntry.objects.filter(
        cluster=cluster, action=ACTION, object=query.name, at__gte=timezone.now() - _AGAIN
    )
    if known.exists():
        return
    audit.record(ARCHIVER, ACTION, query.name, cluster=cluster, reason=why, after={"rows": rows})
    announce(cluster.pk, event("alert", text))


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention of a query: ms of event time, windows; when it ended (ms), None if live."""

    ms: int
    windows: int
    ended_ms: int | None


def prune_windows(now: datetime) -> int:
    """Delete archived windows beyond the retention of their queries; return how many."""
    now_ms, deleted, last = _ms(now), 0, 0
    while deleted < MOST:
        rows = list(ArchivedQuery.objects.filter(pk__gt=last).order_by("pk")[:_CHUNK])
        if not rows:
            break
        last, kept = rows[-1].pk, retentions([row.pk for row in rows])
        for row in rows:
            deleted += _prune(row, kept.get(row.pk), now_ms, max(1, MOST - deleted))
    return deleted


def retentions(queries: Sequence[int]) -> Mapping[int, Retention]:
    """Return the retention of existing queries by id."""
    rows = Query.objects.filter(pk__in=queries).values_list(
        "pk", "retention_s", "retention_windows", "ended_at"
    )
    return {
        pk: Retention(seconds * 1000, windows, None if ended is None else _ms(ended))
        for pk, seconds, windows, ended in rows
    }


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _prune(row: ArchivedQuery, kept: Retention | None, now_ms: int, most: int) -> int:
    if kept is None or (kept.ended_ms is not None and kept.ended_ms + kept.ms < now_ms):
        deleted = archive.delete_oldest(row.pk, most)
        if deleted < most:
            row.delete()
        return deleted
    deleted = archive.delete_oldest(row.pk, min(most, max(0, row.windows - kept.windows)))
    before_ms = row.newest_ms - kept.ms
    due = row.pruned_ms is None or before_ms - row.pruned_ms > kept.ms // _SLACK
    if due and deleted < most:
        left = most - deleted
        aged = archive.delete_oldest(row.pk, left, start_bytes(before_ms))
        if aged < left:
            ArchivedQuery.objects.filter(pk=row.pk).update(pruned_ms=before_ms)
        deleted += aged
    return deleted
