"""Windows of queries whose computation cannot be parsed: dropped by retention, not archived.

A module of users' functions that a query calls may be missing for a while, so its windows wait.
They are dropped by the retention of the query: by event time and number while it lives, and by
time after its end.
"""

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import redis
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Automatic
from controlplane.catalog.computations import computations_of
from controlplane.events.publish import announce, event
from controlplane.models import AuditEntry, Cluster, Query
from controlplane.wire.query import Computation
from controlplane.wire.results import final_windows

logger = logging.getLogger(__name__)

ARCHIVER: Final = Automatic("archiver")
ACTION: Final = "query.drop-windows"
# A query is reported once in this time.
_AGAIN: Final = timedelta(days=1)
# Queries of which this process has logged that they cannot be read.
_logged: set[int] = set()


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
