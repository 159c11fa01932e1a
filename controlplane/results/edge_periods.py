"""Records that arrived on edges and were dropped, by period of event time.

Micro-batches count them while drop rules may drop records of a stream. The fraction of its records
that a window keeps follows from them (`results.kept`).
"""

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.db import connection, transaction
from django.db.models import Exists, F, Max, OuterRef, QuerySet
from django.utils import timezone

from controlplane.models import Cluster, CountedRange, EdgePeriod, Query, Stream
from controlplane.pagination.chunks import chunks, delete_in_chunks
from controlplane.telemetry.samples import Row
from controlplane.wire.drop_counts import OTHERS, PERIODS_S, DropCount, merged
from controlplane.wire.routing.drop_rules import INPUT

# Periods of a stream without drops are kept for so long, and beside periods with drops.
_UNUSED: Final = timedelta(days=1)
_BESIDE_S: Final = 6 * 3_600
# Periods without drops nearby become periods of so many seconds after this time.
_MERGED_S: Final = PERIODS_S[2]
_MERGED_AFTER: Final = timedelta(hours=1)
# Periods that one pass merges at most; the next one continues.
MOST_MERGED: Final = 50_000
# Periods of a cluster that are kept: the newest.
MOST: Final = 1_000_000
# Periods that are read together; a reader of more gets none.
MOST_READ: Final = 200_000
# The least part of the records of the largest period with which a range begins.
_LEAST_SHARE: Final = 0.1
# The columns of a row in the order of `DropCount`.
_KEY: Final = ("stream_id", "query", "window_ms", "slide_ms", "start_s", "seconds")
_SUMS: Final = ("arrived", "dropped")


class Counts(NamedTuple):
    """The records of an edge from `start_s` to `stop_s`; fields as in `DropCount`."""

    stream: int
    query: int
    window_ms: int
    slide_ms: int
    start_s: int
    stop_s: int
    arrived: int
    dropped: int


def record(cluster: Cluster, rows: Sequence[Row]) -> None:
    """Add the counts of telemetry rows, in the transaction that stores the relay's position."""
    counts = [DropCount(*row) for row in merged(row.get("drop_counts", ()) for row in rows)]
    open_ranges = {
        row.stream_id: row
        for row in CountedRange.objects.filter(stream__cluster=cluster, is_open=True)
    }
    if not counts and not open_ranges:
        return
    streams = {count.stream for count in counts}
    # A batch may end after its stream was deleted.
    known = set(Stream.objects.filter(cluster=cluster, pk__in=streams).values_list("pk", flat=True))
    changed: dict[int, CountedRange] = {}
    for row in rows:
        changed |= {id(extended): extended for extended in _extended(open_ranges, row, known)}
    former = [counted for counted in changed.values() if counted.pk is not None]
    CountedRange.objects.bulk_create(item for item in changed.values() if item.pk is None)
    CountedRange.objects.bulk_update(former, ["stop_s", "is_open"], batch_size=100)
    _add([count for count in counts if count.stream in known])


def _extended(
    open_ranges: dict[int, CountedRange], row: Row, known: Set[int]
) -> Iterator[CountedRange]:
    """Yield the ranges that a batch changes: of streams that it counted, and of others it read."""
    periods: dict[int, list[DropCount]] = {}
    for count in (DropCount(*values) for values in row.get("drop_counts", ())):
        if count.query == INPUT and count.arrived and count.stream in known:
            periods.setdefault(count.stream, []).append(count)
    for stream, counts in periods.items():
        stop_s = max(count.start_s + count.seconds for count in counts)
        counted = open_ranges.get(stream)
        if counted is None:
            # A few late records do not make the time before this batch a counted one.
            least = max(count.arrived for count in counts) * _LEAST_SHARE
            start_s = min(count.start_s for count in counts if count.arrived >= least)
            counted = CountedRange(stream_id=stream, start_s=start_s, stop_s=start_s)
            open_ranges[stream] = counted
        if stop_s > counted.stop_s:
            counted.stop_s = stop_s
            yield counted
    for name, records in row["streams"].items():
        if records and int(name) not in periods and int(name) in open_ranges:
            counted = open_ranges.pop(int(name))
            counted.is_open = False
            yield counted


def _add(counts: Sequence[DropCount]) -> None:
    """Add counts to their rows, and create those that do not exist."""
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    names = [*_KEY, *_SUMS, "counted_at"]
    table = connection.ops.quote_name(EdgePeriod._meta.db_table)  # noqa: SLF001 - public API
    sums = [f"{name} = {table}.{name} + excluded.{name}" for name in _SUMS]
    # One statement per row, prepared once: Django's bulk operations cannot add to columns.
    statement = (
        f"INSERT INTO {table} ({', '.join(names)}) "  # noqa: S608 - names of columns
        f"VALUES ({', '.join(['%s'] * len(names))}) ON CONFLICT ({', '.join(_KEY)}) "
        f"DO UPDATE SET {', '.join(sums)}, counted_at = excluded.counted_at"
    )
    with connection.cursor() as cursor:
        cursor.executemany(statement, [[*count, now] for count in counts])


class Ranges(NamedTuple):
    """The counted ranges of a stream (s), an open one without end, and up to where records came."""

    ranges: Sequence[tuple[float, float]]
    newest_s: float


def ranges_of(streams: Iterable[int]) -> dict[int, Ranges]:
    """Return the counted ranges of streams that have some."""
    rows = CountedRange.objects.filter(stream__in=list(streams)).order_by("stream", "start_s")
    ranges: dict[int, list[CountedRange]] = {}
    for row in rows:
        ranges.setdefault(row.stream_id, []).append(row)
    return {
        stream: Ranges(
            [(row.start_s, math.inf if row.is_open else row.stop_s) for row in own],
            max(row.stop_s for row in own),
        )
        for stream, own in ranges.items()
    }


def counts_between(
    streams: Iterable[int], query: int, start_s: float, stop_s: float
) -> list[Counts] | None:
    """Return the counts of the edges before a query that overlap a range of event time.

    Empty if nothing was dropped there; None if there are more than `MOST_READ`.
    """
    rows = _overlapping(streams, query, start_s, stop_s)
    if not rows.filter(dropped__gt=0).exists():
        return []
    columns = ("stream_id", "query", "window_ms", "slide_ms", "start_s", "seconds")
    values = rows.order_by().values_list(*columns, "arrived", "dropped")[: MOST_READ + 1]
    counts = [
        Counts(stream, edge, window, slide, start, start + seconds, arrived, dropped)
        for stream, edge, window, slide, start, seconds, arrived, dropped in values
    ]
    return None if len(counts) > MOST_READ else counts


def _overlapping(
    streams: Iterable[int], query: int, start_s: float, stop_s: float
) -> QuerySet[EdgePeriod]:
    return EdgePeriod.objects.filter(
        stream__in=list(streams),
        query__in=(INPUT, OTHERS, query),
        start_s__lt=stop_s,
        # The index needs a constant; a period has at most a day.
        start_s__gt=start_s - PERIODS_S[-1],
    ).filter(start_s__gt=start_s - F("seconds"))


def prune(now: datetime) -> int:
    """Merge and delete periods that no window needs in full; return how many rows are deleted."""
    deleted = 0
    for cluster in Cluster.objects.filter(streams__edge_periods__isnull=False).distinct():
        rows = EdgePeriod.objects.filter(stream__cluster=cluster)
        longest = Query.objects.filter(cluster=cluster).aggregate(s=Max("retention_s"))["s"] or 0
        # A query keeps its windows for its retention while it lives, and again after its end.
        oldest = now - timedelta(seconds=2 * longest) - _UNUSED
        deleted += delete_in_chunks(rows.filter(counted_at__lt=oldest).order_by("pk"))
        deleted += delete_in_chunks(_without_drops(rows, now - _UNUSED, _BESIDE_S).order_by("pk"))
        fine = _without_drops(rows, now - _MERGED_AFTER, _MERGED_S)
        deleted += _merge(fine.filter(query=INPUT, seconds__lt=_MERGED_S), _MERGED_S, INPUT)
        deleted += _cut(rows)
    return deleted + _prune_ranges()


def _cut(rows: QuerySet[EdgePeriod]) -> int:
    """Reduce the rows to the newest ones; what earlier windows kept is then unknown."""
    newest = rows.order_by("-counted_at", "-pk")
    boundary = newest.values_list("counted_at", flat=True)[MOST : MOST + 1]
    deleted = 0
    for counted_at in boundary:
        old = rows.filter(counted_at__lte=counted_at)
        deleted += _merge(old.filter(dropped__gt=0), PERIODS_S[-1], OTHERS)
        deleted += delete_in_chunks(old.filter(dropped=0).order_by("pk"))
    return deleted


def _merge(rows: QuerySet[EdgePeriod], seconds: int, query: int) -> int:
    """Replace rows by longer periods of an edge, `MOST_MERGED` at most; return how many."""
    merging = list(rows.order_by("counted_at", "pk")[:MOST_MERGED])
    parts = [
        [row.stream_id, query, 0, 0, _start(row, seconds), seconds, row.arrived, row.dropped]
        for row in merging
    ]
    with transaction.atomic():
        _add([DropCount(*row) for row in merged([parts])])
        for some in chunks([row.pk for row in merging]):
            EdgePeriod.objects.filter(pk__in=some).delete()
    return len(merging)


def _start(row: EdgePeriod, seconds: int) -> int:
    return row.start_s // seconds * seconds


def _without_drops(
    rows: QuerySet[EdgePeriod], before: datetime, beside_s: int
) -> QuerySet[EdgePeriod]:
    """Return the rows of an earlier time whose stream has no drops within `beside_s`."""
    beside = EdgePeriod.objects.filter(
        stream=OuterRef("stream"),
        start_s__gte=OuterRef("start_s") - beside_s,
        start_s__lte=OuterRef("start_s") + beside_s,
        dropped__gt=0,
    )
    return rows.filter(~Exists(beside), dropped=0, counted_at__lt=before)


def _prune_ranges() -> int:
    """Delete the ranges whose periods are deleted; return how many."""
    within = EdgePeriod.objects.filter(
        stream=OuterRef("stream"), start_s__gte=OuterRef("start_s"), start_s__lt=OuterRef("stop_s")
    )
    over = CountedRange.objects.filter(is_open=False)
    return delete_in_chunks(over.filter(~Exists(within)).order_by("pk"))
