"""Records that edges dropped, by period of event time.

They show of which windows too little is known for an estimate (`results.sampled`).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db import connection, transaction
from django.db.models import F, Max, QuerySet
from django.utils import timezone

from controlplane.models import Cluster, EdgePeriod, Query, Stream
from controlplane.pagination.chunks import chunks, delete_in_chunks
from controlplane.telemetry.samples import Row
from controlplane.wire.drop_counts import OTHERS, PERIODS_S, DropCount, merged
from controlplane.wire.routing.drop_rules import INPUT

# A query that keeps no windows may show them for so long.
_LEAST_KEPT: Final = timedelta(days=1)
# Periods that one pass merges at most; the next one continues.
MOST_MERGED: Final = 50_000
# Periods of a cluster that are kept: the newest.
MOST: Final = 1_000_000
# The columns of a row in the order of `DropCount`.
_KEY: Final = ("stream_id", "query", "window_ms", "slide_ms", "start_s", "seconds")


def record(cluster: Cluster, rows: Sequence[Row]) -> None:
    """Add the counts of telemetry rows, in the transaction that stores the relay's position."""
    every = merged(row.get("drop_counts", ()) for row in rows)
    counts = [count for row in every if (count := DropCount(*row)).dropped]
    # A batch may end after its stream was deleted.
    streams = Stream.objects.filter(cluster=cluster, pk__in={count.stream for count in counts})
    known = set(streams.values_list("pk", flat=True)) if counts else ()
    _add([count for count in counts if count.stream in known])


def _add(counts: Sequence[DropCount]) -> None:
    """Add counts to their rows, and create those that do not exist."""
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    names = [*_KEY, "dropped", "counted_at"]
    table = connection.ops.quote_name(EdgePeriod._meta.db_table)  # noqa: SLF001 - public API
    # One statement per row, prepared once: Django's bulk operations cannot add to columns.
    statement = (
        f"INSERT INTO {table} ({', '.join(names)}) "  # noqa: S608 - names of columns
        f"VALUES ({', '.join(['%s'] * len(names))}) ON CONFLICT ({', '.join(_KEY)}) "
        f"DO UPDATE SET dropped = {table}.dropped + excluded.dropped, "
        "counted_at = excluded.counted_at"
    )
    with connection.cursor() as cursor:
        cursor.executemany(statement, [[*count, now] for count in counts])


def drops_between(
    streams: Iterable[int], query: int, start_s: float, stop_s: float
) -> list[DropCount]:
    """Return the periods with drops on the edges before a query that overlap a range, in order."""
    rows = EdgePeriod.objects.filter(
        stream__in=list(streams),
        query__in=(INPUT, OTHERS, query),
        start_s__lt=stop_s,
        # The index needs a constant; a period has at most a day.
        start_s__gt=start_s - PERIODS_S[-1],
        dropped__gt=0,
    ).filter(start_s__gt=start_s - F("seconds"))
    return [DropCount(*values) for values in rows.order_by("start_s").values_list(*_KEY, "dropped")]


def prune(now: datetime) -> int:
    """Delete and merge periods that no window needs in full; return how many rows are deleted."""
    deleted = 0
    for cluster in Cluster.objects.filter(streams__edge_periods__isnull=False).distinct():
        rows = EdgePeriod.objects.filter(stream__cluster=cluster)
        longest = Query.objects.filter(cluster=cluster).aggregate(s=Max("retention_s"))["s"] or 0
        # A query keeps its windows for its retention while it lives, and again after its end.
        oldest = now - timedelta(seconds=2 * longest) - _LEAST_KEPT
        deleted += delete_in_chunks(rows.filter(counted_at__lt=oldest))
        deleted += _cut(rows)
    return deleted


def _cut(rows: QuerySet[EdgePeriod]) -> int:
    """Reduce the rows to the newest ones; what earlier windows kept is then unknown."""
    newest = rows.order_by("-counted_at", "-pk")
    boundary = newest.values_list("counted_at", flat=True)[MOST : MOST + 1]
    deleted = 0
    for counted_at in boundary:
        deleted += _merge(rows.filter(counted_at__lte=counted_at))
    return deleted


def _merge(rows: QuerySet[EdgePeriod]) -> int:
    """Replace rows by days of no edge of their own, `MOST_MERGED` at most; return how many."""
    merging = list(rows.order_by("counted_at", "pk")[:MOST_MERGED])
    day = PERIODS_S[-1]
    parts = [
        [row.stream_id, OTHERS, 0, 0, row.start_s // day * day, day, row.dropped] for row in merging
    ]
    with transaction.atomic():
        _add([DropCount(*row) for row in merged([parts])])
        for some in chunks([row.pk for row in merging]):
            EdgePeriod.objects.filter(pk__in=some).delete()
    return len(merging)
