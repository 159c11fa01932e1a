"""What the last days show of a ladder: the latency on each rung, and what each query kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

import numpy as np
from django.db.models import F, Sum

from controlplane.models import Cluster, Query, QueryStream, SheddingInterval
from controlplane.planners.shedding.history import intervals
from controlplane.telemetry.arrivals import RateHistory, rates_between
from controlplane.telemetry.grid import mean
from controlplane.telemetry.series import read
from controlplane.wire.routing.drop_rules import INPUT

# The time that latencies and kept parts are measured over.
MEASURED: Final = timedelta(days=7)
# The intervals whose drops are added up, the newest ones; their edges are rows of JSON.
_MOST_INTERVALS: Final = 2_000
# The length of the periods in which nothing was dropped.
_PERIOD_S: Final = 300
# Kept parts are computed again after so many seconds.
_KEPT_S: Final = 60


@dataclass(frozen=True)
class MeasuredDrops:
    """The records of a query's streams while it ran, and those that the ladder dropped of them."""

    arrived: int
    dropped: int

    @property
    def kept(self) -> float | None:
        """Return the part that was kept, None without records."""
        return 1 - self.dropped / self.arrived if self.arrived else None


def rung_latencies(cluster: Cluster, now: datetime) -> dict[int, float]:
    """Return the p95 latency (ms) while each rung was active, by number, of the last 7 days.

    The mean of the p95 of micro-batches by their results; of rung 0 that of the periods of five
    minutes in which nothing was dropped. Rungs of earlier ladders count, too; those that were not
    active are absent.
    """
    since = now - MEASURED
    rows = SheddingInterval.objects.filter(cluster=cluster, ended_at__gt=since, timed__gt=0)
    sums = rows.order_by().values("rung").annotate(n=Sum("timed"), ms=Sum(F("timed") * F("p95_ms")))
    latencies = {row["rung"]: row["ms"] / row["n"] for row in sums}
    series = read(cluster, ("p95", "kept"), since, now, _PERIOD_S)
    quiet = mean(series["p95"][series["kept"] == 1])
    return latencies if quiet is None else latencies | {0: quiet}


def kept_parts(
    cluster: Cluster, queries: Sequence[int], now: datetime
) -> Mapping[int, MeasuredDrops]:
    """Return what each of some queries kept in the last 7 days, by id; up to a minute old."""
    return _kept_parts(cluster.pk, tuple(queries), int(now.timestamp()) // _KEPT_S)


@lru_cache(maxsize=32)
def _kept_parts(cluster: int, queries: tuple[int, ...], minute: int) -> Mapping[int, MeasuredDrops]:
    row = Cluster.objects.get(pk=cluster)
    now = datetime.fromtimestamp((minute + 1) * _KEPT_S, UTC)
    start = now - MEASURED
    streams = QueryStream.by_query(QueryStream.objects.filter(query__in=queries))
    known = rates_between(row, start, now, sorted({s for read in streams.values() for s in read}))
    dropped = intervals(row, start, now, _MOST_INTERVALS)
    ran = Query.objects.filter(pk__in=queries).values_list("pk", "placed_at", "ended_at")
    return {
        pk: _part(pk, streams.get(pk, ()), known, dropped, (max(start, placed), ended or now))
        for pk, placed, ended in ran
        if placed is not None
    }


def _part(
    query: int,
    streams: Sequence[int],
    known: RateHistory,
    dropped: Sequence[SheddingInterval],
    ran: tuple[datetime, datetime],
) -> MeasuredDrops:
    """Return the part of a query that reads these streams and ran between two moments."""
    begin, end = ran
    inside = np.array([begin <= start < end for start in known.starts], np.bool_)
    rates = [known.of(stream)[inside] for stream in streams]
    arrived = known.seconds * sum(float(np.nansum(row)) for row in rates)
    lost = read = 0
    for row in dropped:
        if row.started_at >= end or row.ended_at <= begin:
            continue
        edges = {(stream, query): records for stream, query, records in row.by_edge}
        read += sum(records for stream, records in row.by_stream if stream in streams)
        for stream in streams:
            lost += edges.get((stream, INPUT), 0) + edges.get((stream, query), 0)
    total = max(round(arrived), read)
    return MeasuredDrops(total, min(total, lost))
