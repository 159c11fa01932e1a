"""Finality of windows: one number per query, up to which start its windows are final.

It follows from the committed watermarks of the query's streams and its lateness, and never
decreases: a stream that was idle may have older records.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import redis
from django.db import OperationalError, transaction

from controlplane.connections import redis_client
from controlplane.models import Cluster, Query, QueryStream, Stream
from controlplane.results.database import RESULTS, results_cursor
from controlplane.wire.foreign.entries import EntryLocation, skip
from controlplane.wire.query_text import QueryText
from controlplane.wire.results import watermarks
from controlplane.wire.results.watermarks import QueryInputs, Watermarks, complete_until
from controlplane.wire.schema import DEFAULT_IDLE_AFTER_S

# Queries per statement.
_CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class WindowTiming:
    """Length and slide of a query's windows, its lateness (ms), and its streams."""

    size_ms: int
    slide_ms: int
    lateness_ms: int
    reading: QueryInputs

    def final_until(self, watermarks: Watermarks) -> int | None:
        """Return the last start (ms) of complete windows, None for none."""
        until = complete_until(watermarks, self.reading)
        return None if until is None else until - self.lateness_ms - self.size_ms


def window_timings(cluster_id: int, queries: Iterable[int]) -> dict[int, WindowTiming]:
    """Return the window timings of existing queries by id."""
    wanted = sorted(queries)
    times: dict[int, WindowTiming] = {}
    for start in range(0, len(wanted), _CHUNK):
        times |= _window_timings(cluster_id, wanted[start : start + _CHUNK])
    return times


def _window_timings(cluster_id: int, ids: list[int]) -> dict[int, WindowTiming]:
    streams = QueryStream.by_query(QueryStream.objects.filter(query__in=ids))
    idle = _idle_after(sorted({stream for some in streams.values() for stream in some}))
    rows = Query.objects.filter(pk__in=ids, cluster=cluster_id).values_list(
        "pk", "text", "key_grouping", "submitted_at"
    )
    timings: dict[int, WindowTiming] = {}
    for pk, text, key_grouping, submitted_at in rows:
        computed = QueryText.from_json(json.loads(text))
        idle_ms = {stream: idle[stream] for stream in streams.get(pk, ()) if stream in idle}
        # A query has an aggregator node during its whole life or never.
        since_ms = round(submitted_at.timestamp() * 1000)
        reading = QueryInputs(list(idle_ms), bool(key_grouping), since_ms, idle_ms)
        size = round(computed.window_s * 1000)
        slide = size if computed.slide_s is None else round(computed.slide_s * 1000)
        timings[pk] = WindowTiming(size, slide, round(computed.lateness_s * 1000), reading)
    return timings


def _idle_after(streams: Sequence[int]) -> dict[int, int]:
    """Return the time without records (ms) after which each stream is idle."""
    idle: dict[int, int] = {}
    for start in range(0, len(streams), _CHUNK):
        rows = Stream.objects.filter(pk__in=streams[start : start + _CHUNK])
        for pk, schema in rows.values_list("pk", "schema"):
            idle[pk] = round(float(schema.get("idle_after_s", DEFAULT_IDLE_AFTER_S)) * 1000)
    return idle


# Queries that end may be written to by batches that were planned before, for so long by the clock
# of batches; by the clock of this process if there is no batch.
ENDED_MS: Final = 30_000
ABANDONED_MS: Final = 600_000
_LIVE: Final = (Query.State.PENDING, Query.State.RUNNING, Query.State.ENDING)
# Window timings of live queries, by cluster, kept in this process.
_timings: dict[int, dict[int, WindowTiming]] = {}


def update_finality(now: datetime) -> int:
    """Store up to which start the windows of every query are final; return for how many it grew.

    An unreadable value of a cluster is counted, and does not affect the others.
    """
    client, updated, now_ms = redis_client(), 0, _ms(now)
    for cluster in Cluster.objects.order_by("pk"):
        try:
            updated += _update_cluster(client, cluster, now_ms)
        except (redis.ConnectionError, redis.TimeoutError, OperationalError):
            raise
        except Exception as error:  # noqa: BLE001 - the others are updated
            skip(client, cluster.slug, EntryLocation.RESULTS, error)
    return updated


def _update_cluster(client: "redis.Redis", cluster: Cluster, now_ms: int) -> int:
    # The watermarks first: what is complete for them has been written by now.
    watermarks_now = watermarks.read(client, cluster.slug)
    with results_cursor() as cursor:
        cursor.execute(
            "SELECT query_id, final_ms FROM results_query WHERE cluster = %s AND NOT is_closed",
            [cluster.slug],
        )
        before: dict[int, int | None] = dict(cursor.fetchall())
    states = _states(cluster.pk, sorted(before))
    _return_claimed(cluster.pk, sorted(before.keys() - states.keys()))
    timings = _known_timings(cluster.pk, states)
    final: dict[int, int] = {}
    for query, timing in timings.items():
        until, known = timing.final_until(watermarks_now), before[query]
        # Between two starts nothing becomes final.
        if until is not None and (
            known is None or until // timing.slide_ms > known // timing.slide_ms
        ):
            final[query] = until
    closed = [query for query, (state, ended_at) in states.items()
              if state not in _LIVE and _is_closed(ended_at, watermarks_now, now_ms)]  # fmt: skip
    if final or closed:
        _store(cluster.slug, final, closed)
    return len(final)


def _return_claimed(cluster_id: int, queries: Sequence[int]) -> None:
    """Return queries that the driver of this cluster claimed to their clusters, without windows."""
    for start in range(0, len(queries), _CHUNK):
        rows = Query.objects.filter(pk__in=queries[start : start + _CHUNK])
        for pk, slug in rows.exclude(cluster=cluster_id).values_list("pk", "cluster__slug"):
            with transaction.atomic(RESULTS), results_cursor() as cursor:
                cursor.execute("DELETE FROM results_window WHERE query_id = %s", [pk])
                cursor.execute(
                    "UPDATE results_query SET cluster = %s WHERE query_id = %s", [slug, pk]
                )


def _states(cluster_id: int, queries: Sequence[int]) -> dict[int, tuple[str, datetime | None]]:
    states: dict[int, tuple[str, datetime | None]] = {}
    for start in range(0, len(queries), _CHUNK):
        rows = Query.objects.filter(pk__in=queries[start : start + _CHUNK], cluster=cluster_id)
        states |= {pk: (state, ended) for pk, state, ended
                   in rows.values_list("pk", "state", "ended_at")}  # fmt: skip
    return states


def _known_timings(cluster_id: int, queries: Collection[int]) -> dict[int, WindowTiming]:
    known = _timings.get(cluster_id, {})
    kept = {query: timing for query, timing in known.items() if query in queries}
    kept |= window_timings(cluster_id, queries - kept.keys() if kept else queries)
    _timings[cluster_id] = kept
    return kept


def _is_closed(ended_at: datetime | None, watermarks_now: Watermarks, now_ms: int) -> bool:
    """Return True if no batch can write to a query any more."""
    if ended_at is None:
        return False
    ended_ms = _ms(ended_at)
    return watermarks_now.clock_ms > ended_ms + ENDED_MS or now_ms > ended_ms + ABANDONED_MS


def _store(cluster: str, final: Mapping[int, int], closed: Sequence[int]) -> None:
    with transaction.atomic(RESULTS), results_cursor() as cursor:
        # The lock of the writer: what it has checked against the former numbers is committed.
        cursor.execute("UPDATE results_cluster SET seq = seq WHERE cluster = %s", [cluster])
        cursor.executemany(
            "UPDATE results_query SET final_ms = %s"
            " WHERE query_id = %s AND (final_ms IS NULL OR final_ms < %s)",
            [(ms, query, ms) for query, ms in final.items()],
        )
        cursor.executemany(
            "UPDATE results_query SET is_closed = TRUE WHERE query_id = %s",
            [(query,) for query in closed],
        )


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
