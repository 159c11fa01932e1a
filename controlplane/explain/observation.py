"""What is stored about a cluster around a moment: samples as arrays, nodes, policy, rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.models import Cluster, MetricSample, Node, Query
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.telemetry import arrivals
from controlplane.telemetry.arrivals import RateHistory
from controlplane.telemetry.columns import Row, figure_rows
from controlplane.telemetry.time_series import KEPT

# How far an explanation looks back.
LOOKBACK: Final = timedelta(minutes=30)
# Means are over this time up to the explained moment.
RECENT: Final = timedelta(seconds=60)
# A moment so close to now is now: it is explained live.
LIVE: Final = timedelta(seconds=30)
# The newest measures of tasks are of this time.
MEASURED: Final = timedelta(minutes=2)
# What follows a past moment is shown, too.
AFTER: Final = timedelta(minutes=5)
# The newest roll-up of ten seconds may be so old; raw samples follow it.
_RAW: Final = timedelta(minutes=2)
_FINE: Final = int(MetricSample.Resolution.TEN_SECONDS)
# Load over capacity of a node that can process no more.
FULL: Final = 1.0
_FIGURES: Final = (
    "loads", "busy", "node_waiting", "node_processed", "node_p95", "node_state", "p95", "arrived",
    "in", "imbalance", "rf", "batch_ms", "split_utilisation",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class ClusterSeries:
    """The samples of a cluster as arrays, oldest first: t samples of k nodes; NaN for missing.

    `times` float64[t]: s since the epoch. `loads`, `busy`, `waiting`, `processed`, `p95_by_node`,
    `state` float64[t, k]; `p95`, `arrived`, `imbalance`, `batch_ms` float64[t]. `splits`
    float64[t, n]: the utilisation of split nodes. `loads` are what arriving records cause, also
    while a backlog is worked off.
    """

    times: Floats
    loads: Floats
    busy: Floats
    waiting: Floats
    processed: Floats
    p95_by_node: Floats
    state: Floats
    p95: Floats
    arrived: Floats
    imbalance: Floats
    replication: Floats
    batch_ms: Floats
    splits: Floats

    @classmethod
    def of(cls, rows: Sequence[Row], nodes: int) -> "ClusterSeries":
        """Return the arrays of rows with `_FIGURES`, oldest first, for at least `nodes` nodes."""
        columns = list(zip(*rows, strict=True)) or [()] * (len(_FIGURES) + 1)
        named = dict(zip(_FIGURES, columns[1:], strict=True))
        arrived, read = _column(named["arrived"]), _column(named["in"])
        known = ~np.isnan(arrived) & (np.nan_to_num(read) > 0)
        shares = np.where(known, arrived / np.where(known, read, 1.0), 1.0)
        return cls(
            times=np.array([moment.timestamp() for moment in columns[0]], np.float64),
            loads=_lists(named["loads"], nodes) * shares[:, None],
            busy=_lists(named["busy"], nodes),
            waiting=_lists(named["node_waiting"], nodes),
            processed=_lists(named["node_processed"], nodes),
            p95_by_node=_lists(named["node_p95"], nodes),
            state=_lists(named["node_state"], nodes),
            p95=_column(named["p95"]),
            arrived=arrived,
            imbalance=_column(named["imbalance"]),
            replication=_column(named["rf"]),
            batch_ms=_column(named["batch_ms"]),
            splits=_lists(named["split_utilisation"], 0),
        )

    def between(self, values: Floats, start: datetime, stop: datetime) -> Floats:
        """Return the samples of a time range of one of the arrays."""
        within = (self.times > start.timestamp()) & (self.times <= stop.timestamp())
        chosen: Floats = values[within]
        return chosen


def _column(values: Sequence[Any]) -> Floats:
    missing = float("nan")
    return np.array([missing if value is None else value for value in values], np.float64)


def _lists(values: Sequence[Any], least: int) -> Floats:
    """Return lists of different lengths as one array; missing values are NaN."""
    lists = [value or () for value in values]
    result = np.full((len(lists), max([least, *map(len, lists)])), np.nan)
    for place, row in enumerate(lists):
        result[place, : len(row)] = [float("nan") if value is None else value for value in row]
    return result


def mean(values: Floats) -> float | None:
    """Return the mean of the known values, None without one."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def median(values: Floats) -> float | None:
    """Return the median of the known values, None without one."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else None


@dataclass(frozen=True, eq=False)
class ClusterObservation:
    """A cluster around a moment; parts are read when they are used, each once.

    `time`: the explained moment; `now`: the present.
    """

    cluster: Cluster
    time: datetime
    now: datetime

    @property
    def is_live(self) -> bool:
        """Return True if the explained moment is now."""
        return self.now - self.time <= LIVE

    @property
    def is_measured(self) -> bool:
        """Return True if the newest measures of tasks are those of the explained moment."""
        return self.now - self.time <= MEASURED

    @property
    def start(self) -> datetime:
        """Return the start of the time that is read."""
        return self.time - LOOKBACK

    @property
    def stop(self) -> datetime:
        """Return the end of the time that is read, exclusive."""
        return min(self.now + timedelta(seconds=5), self.time + AFTER)

    @cached_property
    def policy(self) -> PolicySettings:
        """Return the policy of the cluster."""
        return policy_of(self.cluster)

    @cached_property
    def nodes(self) -> list[Node]:
        """Return the nodes of the cluster by index, removed ones left out."""
        rows = self.cluster.nodes.filter(index__lt=self.cluster.slots)
        return list(rows.order_by("index"))

    @cached_property
    def running_queries(self) -> int:
        """Return the number of running queries."""
        rows = Query.objects.filter(cluster=self.cluster, state=Query.State.RUNNING)
        return rows.count()

    def node(self, index: int) -> Node | None:
        """Return a node by index, None if the cluster has none."""
        return next((node for node in self.nodes if node.index == index), None)

    @cached_property
    def capacities(self) -> Floats:
        """Return the declared records/s of the nodes, float64[k]."""
        return np.array([node.capacity for node in self.nodes], np.float64)

    @cached_property
    def series(self) -> ClusterSeries:
        """Return the samples from `start` to `stop`: of 10 s or longer, the newest as measured."""
        is_fine = self.now - self.start <= KEPT[_FINE]
        resolution = _FINE if is_fine else int(MetricSample.Resolution.MINUTE)
        rows = figure_rows(self.cluster, self.start, self.stop, _FIGURES, resolution)
        last = rows[-1][0] if rows else self.start
        raw_from = max(last + timedelta(seconds=resolution), self.now - _RAW)
        if not rows:
            # A cluster that was started seconds ago has no roll-ups yet.
            raw_from = max(self.start, self.now - KEPT[1])
        if raw_from < self.stop:
            raw = int(MetricSample.Resolution.RAW)
            rows += figure_rows(self.cluster, raw_from, self.stop, _FIGURES, raw)
        return ClusterSeries.of(rows, len(self.nodes))

    def recent(self, values: Floats) -> Floats:
        """Return the samples of one array in the last `RECENT` up to the explained moment."""
        return self.series.between(values, self.time - RECENT, self.time + timedelta(seconds=1))

    def load(self, node: int) -> float | None:
        """Return the mean load of a node over the last `RECENT`, in records/s."""
        return mean(self.recent(self.series.loads)[:, node])

    @cached_property
    def shares(self) -> list[float | None]:
        """Return the load of each node over its capacity, None without data."""
        loads = self.recent(self.series.loads)
        return [
            None if (load := mean(loads[:, place])) is None else load / node.capacity
            for place, node in enumerate(self.nodes)
        ]

    @property
    def fullest(self) -> Node | None:
        """Return the active node with the largest load over its capacity, None without data."""
        known = [
            (share, node)
            for share, node in zip(self.shares, self.nodes, strict=True)
            if share is not None and node.active
        ]
        return max(known, key=lambda pair: pair[0])[1] if known else None

    @property
    def full_share(self) -> float | None:
        """Return the load of all active nodes over their capacity, None without data."""
        rows = [
            (share * node.capacity, node.capacity)
            for share, node in zip(self.shares, self.nodes, strict=True)
            if share is not None and node.active
        ]
        capacity = sum(row[1] for row in rows)
        return sum(row[0] for row in rows) / capacity if capacity else None

    def rates(self, streams: Sequence[int]) -> RateHistory:
        """Return the rates of streams from `start` to the explained moment; equal ones once."""
        key = tuple(streams)
        known = self._rates.get(key)
        if known is None:
            stop = self.time + timedelta(seconds=arrivals.PERIOD_S)
            known = arrivals.rates_between(self.cluster, self.start, stop, streams)
            self._rates[key] = known
        return known

    @cached_property
    def _rates(self) -> dict[tuple[int, ...], RateHistory]:
        """Return the rates that were read, by the streams."""
        return {}
