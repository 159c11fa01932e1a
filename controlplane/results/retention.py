"""Retention of windows, by time and by number, in bounded steps.

A live query keeps windows that start within `retention_s` of its newest one; an ended query keeps
its windows for `retention_s` after its end. `retention_windows` bounds both. In PostgreSQL a day
that no query keeps is a partition, which is dropped as a whole.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import OperationalError, transaction

from controlplane.models import Query, Stream
from controlplane.results.database import RESULTS, is_postgres, results_cursor
from controlplane.results.unread import UnreadResults
from controlplane.wire.results.tables import DAY_MS, DELETED, partitions
from controlplane.wire.sources.files import FileSource

# Windows that one pass deletes at most, and its time (s); the next one continues.
MOST: Final = 50_000
PASS_S: Final = 20.0
# Rows per statement that deletes: the write lock is held for milliseconds.
CHUNK: Final = 2_000
# Queries per statement.
_QUERIES: Final = 500
_EVERYTHING: Final = 2**62
_LAST: Final = (
    "SELECT start_ms, key FROM results_window WHERE query_id = %s AND start_ms < %s"
    " ORDER BY start_ms, key LIMIT 1 OFFSET %s"
)
_DELETE: Final = "DELETE FROM results_window WHERE query_id = %s AND start_ms < %s"
_DELETE_TO: Final = (
    "DELETE FROM results_window WHERE query_id = %s AND start_ms <= %s"
    " AND (start_ms, key) <= (%s, %s)"
)
_LOCK: Final = (
    "UPDATE results_cluster SET seq = seq"
    " WHERE cluster = (SELECT cluster FROM results_query WHERE query_id = %s)"
)
_NEWEST: Final = "SELECT max(start_ms) FROM results_window WHERE query_id = %s"
_SURPLUS: Final = (
    "SELECT start_ms FROM results_window WHERE query_id = %s"
    " ORDER BY start_ms DESC, key DESC LIMIT 1 OFFSET %s"
)
_FILES: Final = "SELECT DISTINCT cluster, stream FROM results_file"
_DELETE_FILES: Final = (
    "DELETE FROM results_file WHERE cluster = %s AND stream = %s AND number < %s +"
    " (SELECT min(number) FROM results_file WHERE cluster = %s AND stream = %s)"
)
# After which query the next pass begins.
_position = [0]


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention of a query: ms of event time, windows; when it ended (ms), None if live."""

    ms: int
    windows: int
    ended_ms: int | None


def prune_windows(now: datetime) -> int:
    """Delete windows beyond the retention of their queries; return how many, without partitions."""
    first, unread = _first_starts(_ms(now)), UnreadResults(now)
    if is_postgres():
        _drop_partitions(min(first.values(), default=-_EVERYTHING), unread)
    deadline, deleted = time.monotonic() + PASS_S, 0
    # The pass before may have had no time for those after its last query.
    for query in sorted(first, key=lambda pk: (pk <= _position[0], pk)):
        if deleted >= MOST or time.monotonic() > deadline:
            break
        deleted += _prune(query, first[query], MOST - deleted, unread)
        _position[0] = query
    return deleted


def prune_files() -> int:
    """Delete what is indexed of files that no stream reads; return how many of them."""
    deadline, deleted = time.monotonic() + PASS_S, 0
    with results_cursor() as cursor:
        cursor.execute(_FILES)
        indexed = set(cursor.fetchall())
        # Read last: a stream is there before its files are.
        streams = Stream.objects.filter(source__kind=FileSource.kind)
        for stream in sorted(indexed.difference(streams.values_list("cluster__slug", "pk"))):
            chunk = CHUNK
            while chunk and time.monotonic() < deadline:
                cursor.execute(_DELETE_FILES, [*stream, CHUNK, *stream])
                chunk = cursor.rowcount
                deleted += chunk
    return deleted


def _first_starts(now_ms: int) -> dict[int, int]:
    """Return by query the start (ms) before which it keeps no windows."""
    with results_cursor() as cursor:
        cursor.execute("SELECT query_id FROM results_query ORDER BY query_id")
        queries = [query for (query,) in cursor.fetchall()]
    first: dict[int, int] = {}
    for start in range(0, len(queries), _QUERIES):
        some = queries[start : start + _QUERIES]
        kept = _retentions(some)
        first |= {query: _first_kept(query, kept.get(query), now_ms) for query in some}
    return first


def _retentions(queries: Sequence[int]) -> Mapping[int, Retention]:
    rows = Query.objects.filter(pk__in=queries).values_list(
        "pk", "retention_s", "retention_windows", "ended_at"
    )
    return {
        pk: Retention(seconds * 1000, windows, None if ended is None else _ms(ended))
        for pk, seconds, windows, ended in rows
    }


def _first_kept(query: int, kept: Retention | None, now_ms: int) -> int:
    """Return the start (ms) before which a query keeps no windows."""
    if kept is None or (kept.ended_ms is not None and kept.ended_ms + kept.ms < now_ms):
        return _EVERYTHING
    with results_cursor() as cursor:
        cursor.execute(_NEWEST, [query])
        newest = cursor.fetchone()[0]
        cursor.execute(_SURPLUS, [query, kept.windows])
        surplus = cursor.fetchone()
    if newest is None:
        return _EVERYTHING - 1
    before_ms = int(newest) - kept.ms
    if is_postgres() and kept.ms > 2 * DAY_MS:
        # The rest of the day leaves with its partition.
        before_ms = before_ms // DAY_MS * DAY_MS
    # Whole starts are deleted.
    return before_ms if surplus is None else max(before_ms, int(surplus[0]) + 1)


def _prune(query: int, before_ms: int, most: int, unread: UnreadResults) -> int:
    """Delete at most so many of the oldest windows before a start; return how many."""
    deleted = 0
    while deleted < most:
        wanted = min(CHUNK, most - deleted)
        with transaction.atomic(RESULTS), results_cursor() as cursor:
            # The lock of the writer, which does not write what is deleted.
            cursor.execute(_LOCK, [query])
            cursor.execute(_LAST, [query, before_ms, wanted - 1])
            last = cursor.fetchone()
            lost = unread.count(cursor, query, last or (before_ms, b""))
            if last:
                cursor.execute(_DELETE_TO, [query, last[0], *last])
            else:
                cursor.execute(_DELETE, [query, before_ms])
            chunk = int(cursor.rowcount)
            if chunk:
                until_ms = last[0] if last else before_ms - 1
                cursor.execute(DELETED.format(values="VALUES (%s, %s)"), [query, until_ms])
            if chunk < wanted and before_ms == _EVERYTHING:
                for table in ("results_query", "results_deleted"):
                    cursor.execute(f"DELETE FROM {table} WHERE query_id = %s", [query])
        deleted += chunk
        unread.store(lost)
        if chunk < wanted:
            break
    return deleted


def _drop_partitions(least_ms: int, unread: UnreadResults) -> None:
    """Drop the days of which no query keeps a window."""
    with results_cursor() as cursor:
        days = partitions(cursor)
    for day, name in days.items():
        if (day + 1) * DAY_MS > least_ms:
            continue
        end = (day + 1) * DAY_MS, b""
        # Batches wait behind this lock: it is not waited for while a statement reads.
        with suppress(OperationalError):
            with transaction.atomic(RESULTS), results_cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '1s'")
                lost = [unread.count(cursor, query, end, day * DAY_MS) for query in unread.queries]
                values = "SELECT query_id, %s FROM results_query"
                cursor.execute(DELETED.format(values=values), [end[0] - 1])
                cursor.execute(f"DROP TABLE {name}")
            for some in lost:
                unread.store(some)


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
