"""The skew of the keys of queries over time: periods of ten seconds, five minutes and an hour."""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import fmean
from typing import Any, Final

from django.db.models import Avg, Max, Min

from algorithms.balance import imbalance
from algorithms.vocabulary import Floats
from controlplane.models import Cluster, KeySkew, Query, Task
from controlplane.planners.partitioning.measured_keys import MeasuredKeys, measured_keys
from controlplane.planners.partitioning.observation import grouped_queries, newest_samples
from controlplane.planning.measured.key_loads import owners_of, task_capacities

logger = logging.getLogger(__name__)

PERIOD_S: Final = int(KeySkew.Period.TEN_SECONDS)
# How long the periods of each length are kept.
KEPT: Final[Mapping[int, timedelta]] = {
    PERIOD_S: timedelta(days=1),
    int(KeySkew.Period.FIVE_MINUTES): timedelta(days=3),
    int(KeySkew.Period.HOUR): timedelta(days=30),
}
# Longer periods are means of shorter ones.
_MEANS: Final = (
    (PERIOD_S, int(KeySkew.Period.FIVE_MINUTES)),
    (int(KeySkew.Period.FIVE_MINUTES), int(KeySkew.Period.HOUR)),
)
# Complete periods that are written: the last one, and the one before if it was missed.
_PERIODS: Final = 2
# Samples of a split node that are read of a query: one a second at most, and some more.
_SAMPLES_MORE: Final = 5
# The clock of the data plane may differ by so many seconds.
_CLOCKS_S: Final = 10.0
# The time after which a period is complete.
_PATIENCE: Final = timedelta(seconds=30)
# Points of a history.
POINTS: Final = 240
_COLUMNS: Final = ("top_share", "top10_share", "imbalance", "pairs", "records_per_s")


@dataclass(frozen=True)
class QuerySkew:
    """The mean imbalance of a running query whose key grouping can change."""

    query: int
    name: str
    imbalance: float


@dataclass(frozen=True)
class SkewPoint:
    """The skew at a time: shares of the most frequent key and of the ten most frequent keys.

    `imbalance`: of the query's tasks, a share of capacity; `grouping`: the name of the key
    grouping.
    """

    time: datetime
    top_share: float
    top10_share: float
    imbalance: float
    grouping: str


def record_all(now: datetime) -> int:
    """Write the skew of the queries of every cluster; return how many rows.

    An error in one cluster does not affect the others.
    """
    written = 0
    for cluster in Cluster.objects.filter(desired=Cluster.Desired.RUNNING):
        try:
            written += record(cluster, now)
        except Exception:
            # The next beat retries.
            logger.exception("Recording the skew of keys of %s failed", cluster.slug)
    return written


def record(cluster: Cluster, now: datetime) -> int:
    """Write the skew of a cluster's queries in the last complete periods; return how many rows."""
    stop = start_of(now, PERIOD_S)
    starts = [stop - timedelta(seconds=PERIOD_S * back) for back in range(_PERIODS, 0, -1)]
    queries = {query.pk: query for query in _split_queries(cluster)}
    if not queries:
        return 0
    known = KeySkew.objects.filter(query__cluster=cluster, seconds=PERIOD_S, t__in=starts)
    written = set(known.values_list("query_id", "t"))
    capacities = _capacities(cluster, queries)
    seconds = (now - starts[0]).total_seconds() + _CLOCKS_S
    count = (math.ceil(seconds) + _SAMPLES_MORE) * cluster.splits
    rows = []
    for query, samples in newest_samples(cluster, list(queries), count, seconds):
        for start in starts:
            if (query, start) in written or query not in capacities:
                continue
            first, last = _ms(start), _ms(start + timedelta(seconds=PERIOD_S))
            keys = measured_keys([row for row in samples if first <= row.clock_ms < last])
            # The number of tasks may have changed meanwhile.
            if keys is not None and len(keys.task_rates) == len(capacities[query]):
                rows.append(_row(queries[query], start, keys, capacities[query]))
    KeySkew.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
    return len(rows)


def _split_queries(cluster: Cluster) -> list[Query]:
    rows = Query.objects.filter(cluster=cluster, state=Query.State.RUNNING, task_count__gt=1)
    return list(rows.only("id", "key_grouping").order_by("id"))


def _capacities(cluster: Cluster, queries: Mapping[int, Query]) -> dict[int, Floats]:
    nodes = dict(cluster.nodes.values_list("index", "capacity"))
    ranges = Task.ranges(Task.objects.filter(query__in=queries))
    return {query: task_capacities(owners_of(placed), nodes) for query, placed in ranges.items()}


def _row(query: Query, start: datetime, keys: MeasuredKeys, capacities: Floats) -> KeySkew:
    return KeySkew(
        query=query,
        seconds=PERIOD_S,
        t=start,
        top_share=round(keys.top_share, 6),
        top10_share=round(keys.top10_share, 6),
        imbalance=round(imbalance(keys.task_rates / capacities), 6),
        pairs=keys.pairs,
        records_per_s=round(keys.records_per_s, 3),
        grouping=query.key_grouping,
    )


def recent_skews(cluster: Cluster, since: datetime) -> list[QuerySkew]:
    """Return the mean imbalance since a time of each query whose key grouping can change."""
    rows = KeySkew.objects.filter(query__cluster=cluster, seconds=PERIOD_S, t__gte=since)
    means = dict(
        rows.order_by().values("query").annotate(m=Avg("imbalance")).values_list("query", "m")
    )
    if not means:
        return []
    queries = grouped_queries(cluster)
    return [QuerySkew(q.pk, q.name, means[q.pk]) for q in queries if q.pk in means]


def has_history(query: Query) -> bool:
    """Return True if the skew of a query was recorded and is kept."""
    return KeySkew.objects.filter(query=query).exists()


def history(
    query: Query,
    since: datetime,
    stop: datetime,
    points: int = POINTS,
    now: datetime | None = None,
) -> list[SkewPoint]:
    """Return the skew of a query in a time range, oldest first, as means of at most `points` times.

    `stop`: the exclusive end of the range; `now`: the present if the range ends before it.
    """
    present, begin = now or stop, since
    if query.placed_at is not None:
        # Of a young query there are no long periods yet.
        begin = max(since, query.placed_at)
    seconds = next((s for s, kept in KEPT.items() if present - kept <= begin), max(KEPT))
    rows = KeySkew.objects.filter(query=query, seconds=seconds, t__gte=since, t__lt=stop)
    fields = ("t", "top_share", "top10_share", "imbalance", "grouping")
    values = list(rows.order_by("t").values_list(*fields))
    step = max(float(seconds), (stop - since).total_seconds() / points)
    parts: dict[int, list[Any]] = {}
    for row in values:
        parts.setdefault(int((row[0] - since).total_seconds() // step), []).append(row)
    return [
        SkewPoint(
            time=part[0][0],
            top_share=_rounded_mean(part, 1),
            top10_share=_rounded_mean(part, 2),
            imbalance=_rounded_mean(part, 3),
            grouping=part[-1][4],
        )
        for part in parts.values()
    ]


def _rounded_mean(rows: Sequence[Any], column: int) -> float:
    return round(fmean(row[column] for row in rows), 6)


def roll_up(now: datetime) -> int:
    """Write the longer periods that are complete; return how many rows."""
    return sum(_roll_up(fine, seconds, now) for fine, seconds in _MEANS)


def _roll_up(fine: int, seconds: int, now: datetime) -> int:
    end = start_of(now - _PATIENCE, seconds)
    written = 0
    for start in _open_periods(fine, seconds, end):
        stop = start + timedelta(seconds=seconds)
        rows = KeySkew.objects.filter(seconds=fine, t__gte=start, t__lt=stop).order_by("t")
        groups: dict[int, list[Any]] = {}
        for row in rows.values_list("query", "grouping", *_COLUMNS):
            groups.setdefault(row[0], []).append(row)
        means = [_mean(query, seconds, start, group) for query, group in groups.items()]
        KeySkew.objects.bulk_create(means, ignore_conflicts=True, batch_size=500)
        written += len(means)
    return written


def _open_periods(fine: int, seconds: int, end: datetime) -> Iterator[datetime]:
    """Yield the starts of the periods with shorter ones that are not written yet, before `end`."""
    done = KeySkew.objects.filter(seconds=seconds).aggregate(t=Max("t"))["t"]
    first = KeySkew.objects.filter(seconds=fine).aggregate(t=Min("t"))["t"]
    if first is None:
        return
    start = start_of(first, seconds)
    if done is not None:
        start = max(start, done + timedelta(seconds=seconds))
    while start < end:
        yield start
        start += timedelta(seconds=seconds)


def _mean(query: int, seconds: int, start: datetime, rows: Sequence[Any]) -> KeySkew:
    means = {name: fmean(row[place] for row in rows) for place, name in enumerate(_COLUMNS, 2)}
    return KeySkew(
        query_id=query,
        seconds=seconds,
        t=start,
        grouping=rows[-1][1],
        **means | {"pairs": round(means["pairs"])},
    )


def prune(now: datetime) -> int:
    """Delete periods that are kept no longer; return how many."""
    return sum(
        KeySkew.objects.filter(seconds=seconds, t__lt=now - kept).order_by().delete()[0]
        for seconds, kept in KEPT.items()
    )


def start_of(moment: datetime, seconds: int) -> datetime:
    """Return the start of the period of a length that contains a moment."""
    return datetime.fromtimestamp(int(moment.timestamp()) // seconds * seconds, UTC)


def _ms(moment: datetime) -> float:
    return moment.timestamp() * 1000
