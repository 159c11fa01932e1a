"""The skew of the keys of queries over time."""

import logging
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from algorithms.balance import imbalance
from algorithms.partitioning.catalog import GROUPINGS
from algorithms.vocabulary import Floats
from controlplane.models import Cluster, Query, Task
from controlplane.planners.partitioning.measured_keys import MeasuredKeys, measured_keys
from controlplane.planners.partitioning.observation import grouped_queries, newest_samples
from controlplane.planning.measured.key_loads import owners_of, task_capacities
from controlplane.telemetry import series
from controlplane.telemetry.grid import Grid, Period, means
from controlplane.telemetry.series import code_of, start_of
from controlplane.wire.figures import ARRIVALS_PERIOD_S as PERIOD_S
from controlplane.wire.figures import KEPT

logger = logging.getLogger(__name__)

# Complete periods that are written: the last one, and the one before if it was missed.
_PERIODS: Final = 2
# Samples of a split node that are read of a query: one a second at most, and some more.
_SAMPLES_MORE: Final = 5
# The clock of the data plane may differ by so many seconds.
_CLOCKS_S: Final = 10.0
# Points of a history.
POINTS: Final = 240
_SERIES: Final = (
    "key_top_share", "key_top10_share", "key_imbalance", "key_records", "key_grouping"
)  # fmt: skip
_LONGEST: Final = max(KEPT["query"])
_LONGEST_FIRST: Final = sorted(KEPT["query"].items(), reverse=True)
_GROUPINGS: Final = {code_of(name): name for name in ("", *GROUPINGS)}


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
    """Write the skew of a cluster's queries in the last complete periods; return how many."""
    stop = start_of(now, PERIOD_S)
    starts = [stop - timedelta(seconds=PERIOD_S * back) for back in range(_PERIODS, 0, -1)]
    queries = {query.pk: query for query in _split_queries(cluster)}
    if not queries:
        return 0
    rows = _stored(cluster, starts)
    capacities = _capacities(cluster, queries)
    seconds = (now - starts[0]).total_seconds() + _CLOCKS_S
    count = (math.ceil(seconds) + _SAMPLES_MORE) * cluster.splits
    changed: set[datetime] = set()
    written = 0
    for query, samples in newest_samples(cluster, list(queries), count, seconds):
        for start in starts:
            if query in rows[start] or query not in capacities:
                continue
            first, last = _ms(start), _ms(start + timedelta(seconds=PERIOD_S))
            keys = measured_keys([row for row in samples if first <= row.clock_ms < last])
            # The number of tasks may have changed meanwhile.
            if keys is not None and len(keys.task_rates) == len(capacities[query]):
                rows[start][query] = _values(queries[query], keys, capacities[query])
                changed.add(start)
                written += 1
    series.record(cluster, (_period(start, rows[start]) for start in changed), update=True)
    return written


# The values of `_SERIES` by query.
_Rows = dict[int, tuple[float, ...]]


def _stored(cluster: Cluster, starts: Collection[datetime]) -> dict[datetime, _Rows]:
    stored = series.stored([cluster.pk], ["query"], PERIOD_S).filter(t__in=starts)
    rows: dict[datetime, _Rows] = {start: {} for start in starts}
    for _, period in series.periods_of(stored):
        columns = (period.values[name].tolist() for name in _SERIES)
        ids = period.subjects.astype(np.int64).tolist()
        rows[period.t] = dict(zip(ids, zip(*columns, strict=True), strict=True))
    return rows


def _period(start: datetime, rows: _Rows) -> Period:
    ids = sorted(rows)
    columns = zip(*(rows[query] for query in ids), strict=True)
    values = {name: np.array(c, np.float64) for name, c in zip(_SERIES, columns, strict=True)}
    return Period("query", PERIOD_S, start, PERIOD_S, np.array(ids, np.float64), values)


def _split_queries(cluster: Cluster) -> list[Query]:
    rows = Query.objects.filter(cluster=cluster, state=Query.State.RUNNING, task_count__gt=1)
    return list(rows.only("id", "key_grouping").order_by("id"))


def _capacities(cluster: Cluster, queries: Mapping[int, Query]) -> dict[int, Floats]:
    nodes = dict(cluster.nodes.values_list("index", "capacity"))
    ranges = Task.ranges(Task.objects.filter(query__in=queries))
    return {query: task_capacities(owners_of(placed), nodes) for query, placed in ranges.items()}


def _values(query: Query, keys: MeasuredKeys, capacities: Floats) -> tuple[float, ...]:
    return (
        round(keys.top_share, 6),
        round(keys.top10_share, 6),
        round(imbalance(keys.task_rates / capacities), 6),
        round(keys.records_per_s, 3),
        code_of(query.key_grouping),
    )


def recent_skews(
    cluster: Cluster, since: datetime, queries: Collection[int] | None = None
) -> list[QuerySkew]:
    """Return the mean imbalance since a time of each query whose key grouping can change.

    `queries`: of these only.
    """
    stop = datetime.now(UTC) + timedelta(seconds=_CLOCKS_S)
    skews = series.read(cluster, ("key_imbalance",), since, stop, PERIOD_S, subjects=queries)
    known = skews.window()["key_imbalance"][0].tolist()
    means = {q: m for q, m in zip(skews.subjects.tolist(), known, strict=True) if not math.isnan(m)}
    grouped = grouped_queries(cluster) if means else []
    return [QuerySkew(q.pk, q.name, means[q.pk]) for q in grouped if q.pk in means]


def newest_skews(
    cluster: Cluster, queries: Collection[int], since: datetime
) -> dict[int, tuple[float, float]]:
    """Return the share of the largest key and the imbalance of each query, as last measured."""
    names, now = ("key_top_share", "key_imbalance"), datetime.now(UTC)
    newest: dict[int, tuple[float, float]] = {}
    skews = series.read(cluster, names, since, now, PERIOD_S, subjects=queries)
    for place, query in enumerate(skews.subjects.tolist()):
        measured = skews.where(~np.isnan(skews[names[0]][:, place]))
        if len(measured):
            top, imbalance_ = (float(measured[name][-1, place]) for name in names)
            newest[query] = top, imbalance_
    return newest


def top_rates(
    cluster: Cluster, queries: Collection[int], start: datetime, stop: datetime
) -> dict[int, float]:
    """Return the mean records/s of the most frequent key of queries in a time range."""
    names = "key_top_share", "key_records"
    skews = series.read(cluster, names, start, stop, PERIOD_S, subjects=queries)
    rates = means(skews[names[0]] * skews[names[1]]).tolist()
    return {q: r for q, r in zip(skews.subjects.tolist(), rates, strict=True) if not math.isnan(r)}


def has_history(query: Query) -> bool:
    """Return True if the skew of a query was recorded and is kept."""
    now = datetime.now(UTC)
    return any(len(_read(query, now - kept, now, seconds)) for seconds, kept in _LONGEST_FIRST)


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
    seconds = next((s for s, kept in KEPT["query"].items() if present - kept <= begin), _LONGEST)
    step = max(float(seconds), (stop - since).total_seconds() / points)
    skews = _read(query, since, stop, seconds)
    parts = skews.merged(((skews.times - since.timestamp()) // step).astype(np.int64))
    columns = (parts[name][:, 0].tolist() for name in _SERIES)
    return [
        SkewPoint(t, round(top, 6), round(top10, 6), round(mean, 6), _GROUPINGS.get(code, ""))
        for t, top, top10, mean, _, code in zip(parts.starts, *columns, strict=True)
    ]


def _read(query: Query, since: datetime, stop: datetime, seconds: int) -> Grid:
    """Return the periods in which the skew of a query was measured."""
    skews = series.read(query.cluster, _SERIES, since, stop, seconds, subjects=[query.pk])
    return skews.where(~np.isnan(skews["key_imbalance"][:, 0]))


def _ms(moment: datetime) -> float:
    return moment.timestamp() * 1000
