"""The observation of a cluster around a moment, for loops, explanations and headlines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

import numpy as np
from django.db.models import Count, QuerySet
from redis.exceptions import RedisError

from algorithms.vocabulary import Flags, Floats
from controlplane import models
from controlplane.connections import redis_client
from controlplane.models import Cluster, Exclusion, MetricSample, Node, Query, Stream, Task
from controlplane.policies.exclusions import live_exclusions
from controlplane.policies.measure_limits import reachable_of
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.telemetry import arrivals
from controlplane.telemetry.arrivals import RateHistory
from controlplane.telemetry.arrivals.catching_up import CatchingUp, catching_up
from controlplane.telemetry.columns import Row, figure_rows
from controlplane.telemetry.time_series import KEPT
from controlplane.watch.series_shifts import Shifts, largest_shifts
from controlplane.wire.figures import figure_of
from controlplane.wire.measures import TaskMeasure, read_tasks

# How far an observation looks back.
LOOKBACK: Final = timedelta(minutes=30)
# Means and medians are over this time up to the moment, so one slow batch is not a problem.
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
# A cluster with a smaller part of its load was just started, and fills within this time.
_FILLED: Final = 0.1
_FILLS: Final = timedelta(minutes=3)
# Samples of its load now, and at the start of the read time.
_LAST: Final = 6
# Load over capacity of a node that can process no more.
FULL: Final = 1.0
# The fields of `ClusterSeries` with their figures: of nodes or split nodes, and of the cluster.
_LISTS: Final = {
    "loads": "loads", "busy": "busy", "waiting": "node_waiting", "processed": "node_processed",
    "p95_by_node": "node_p95", "state": "node_state", "splits": "split_utilisation",
}  # fmt: skip
_COLUMNS: Final = {
    "p95": "p95", "arrived": "arrived", "read": "in", "imbalance": "imbalance",
    "replication": "rf", "kept": "kept",
}  # fmt: skip
FIGURES: Final = (*_LISTS.values(), *_COLUMNS.values())


@dataclass(frozen=True, eq=False)
class ClusterSeries:
    """The samples of a cluster as arrays, oldest first: t samples of k nodes; NaN for missing.

    `times` float64[t]: s since the epoch. `loads`, `busy`, `waiting`, `processed`, `p95_by_node`,
    `state` float64[t, k]; `p95`, `arrived`, `read`, `imbalance`, `replication`, `kept` float64[t].
    `splits` float64[t, n]: the utilisation of split nodes. `loads` are what arriving records cause,
    also while a backlog is worked off.
    """

    times: Floats
    loads: Floats
    busy: Floats
    waiting: Floats
    processed: Floats
    p95_by_node: Floats
    state: Floats
    splits: Floats
    p95: Floats
    arrived: Floats
    read: Floats
    imbalance: Floats
    replication: Floats
    kept: Floats

    @classmethod
    def of(cls, rows: Sequence[Row], nodes: int) -> "ClusterSeries":
        """Return the arrays of rows with `FIGURES`, oldest first, for at least `nodes` nodes."""
        times, *columns = list(zip(*rows, strict=True)) or [()] * (len(FIGURES) + 1)
        lists = {name: _lists(values, nodes) for name, values in zip(_LISTS, columns, strict=False)}
        own = {
            name: _column(values)
            for name, values in zip(_COLUMNS, columns[len(_LISTS) :], strict=True)
        }
        known = ~np.isnan(own["arrived"]) & (np.nan_to_num(own["read"]) > 0)
        shares = np.where(known, own["arrived"] / np.where(known, own["read"], 1.0), 1.0)
        lists["loads"] = lists["loads"] * shares[:, None]
        return cls(np.array([time.timestamp() for time in times], np.float64), **lists, **own)

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


def means(values: Floats) -> Floats:
    """Return the means of the columns of known values, NaN without one."""
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    result: Floats = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return result


def mean(values: Floats) -> float | None:
    """Return the mean of the known values, None without one."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def median(values: Floats) -> float | None:
    """Return the median of the known values, None without one."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else None


@dataclass(frozen=True)
class LevelShift:
    """The largest change of the mean of a series; `time`: None if it is not more than chance."""

    before: float
    after: float
    time: datetime | None


@dataclass(frozen=True, eq=False)
class ClusterObservation:
    """A cluster around a moment; parts are read when they are used, each once.

    `time`: the observed moment; `now`: the present.
    """

    cluster: Cluster
    time: datetime
    now: datetime

    @classmethod
    def of_moment(
        cls, cluster: Cluster, time: datetime | None = None, now: datetime | None = None
    ) -> "ClusterObservation":
        """Return the observation of a moment; `time`, `now`: the present by default."""
        present = now or datetime.now(UTC)
        # Nothing is known before 1970, and the times beside the first ones are none.
        return cls(cluster, max(min(time or present, present), datetime.fromtimestamp(0, UTC)),
                   present)  # fmt: skip

    @property
    def is_live(self) -> bool:
        """Return True if the observed moment is now."""
        return self.now - self.time <= LIVE

    @property
    def is_measured(self) -> bool:
        """Return True if the newest measures of tasks are those of the observed moment."""
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

    @property
    def active(self) -> list[Node]:
        """Return the nodes that may host tasks."""
        return [node for node in self.nodes if node.active]

    @cached_property
    def tasks(self) -> Mapping[int, int]:
        """Return the number of tasks that the applied routing assigns to nodes, by their index."""
        hosted = Task.objects.filter(
            node__cluster=self.cluster, since_version__lte=self.cluster.applied_version
        ).order_by()
        return dict(hosted.values("node__index").annotate(n=Count("id")).values_list(
            "node__index", "n"))  # fmt: skip

    @cached_property
    def excluded_nodes(self) -> frozenset[str]:
        """Return the names of the nodes that are excluded from plans."""
        return self._excluded(Exclusion.Kind.NODE)

    @cached_property
    def excluded_queries(self) -> frozenset[str]:
        """Return the names of the queries that are excluded from plans."""
        return self._excluded(Exclusion.Kind.QUERY)

    def _excluded(self, kind: str) -> frozenset[str]:
        names = live_exclusions(self.cluster, self.now).filter(kind=kind)
        return frozenset(names.values_list("subject", flat=True))

    @cached_property
    def running_queries(self) -> int:
        """Return the number of running queries."""
        return self._running.count()

    @cached_property
    def split_queries(self) -> int:
        """Return the number of running queries of several tasks."""
        return self._running.filter(task_count__gt=1).count()

    @cached_property
    def reachable(self) -> models.ReachableMeasures | None:
        """Return what placement reaches, None before it was computed."""
        return reachable_of([self.cluster.pk]).get(self.cluster.pk)

    @property
    def _running(self) -> QuerySet[Query]:
        return Query.objects.filter(cluster=self.cluster, state=Query.State.RUNNING)

    def node(self, index: int) -> Node | None:
        """Return a node by index, None if the cluster has none."""
        return next((node for node in self.nodes if node.index == index), None)

    @cached_property
    def capacities(self) -> Floats:
        """Return the declared records/s of the nodes, float64[k]."""
        return np.array([node.capacity for node in self.nodes], np.float64)

    @cached_property
    def samples(self) -> Sequence[Mapping[str, Any]]:
        """Return the samples of the last `RECENT` as they were measured, oldest first."""
        rows = MetricSample.objects.filter(
            cluster=self.cluster, resolution=MetricSample.Resolution.RAW, t__gt=self.time - RECENT
        )
        return list(rows.order_by("t").values_list("values", flat=True))

    def middle(self, name: str) -> float | None:
        """Return the median of a figure over the last `RECENT`, None if it is not known."""
        figure = figure_of(name).name
        known = [sample[figure] for sample in self.samples if sample.get(figure) is not None]
        return median(np.array(known, np.float64))

    @cached_property
    def is_new(self) -> bool:
        """Return whether no sample is older than `RECENT`: the first ones do not show the load."""
        older = MetricSample.objects.filter(
            cluster=self.cluster, resolution=MetricSample.Resolution.RAW,
            t__gt=self.time - LOOKBACK, t__lte=self.time - RECENT,
        )  # fmt: skip
        return not older.exists()

    def catching_up(self) -> CatchingUp | None:
        """Return why the last `RECENT` shows an outage and not the load, None if it does."""
        return catching_up(self.samples, self.cluster.trigger_ms)

    @cached_property
    def series(self) -> ClusterSeries:
        """Return the samples from `start` to `stop`: of 10 s or longer, the newest as measured."""
        is_fine = self.now - self.start <= KEPT[_FINE]
        resolution = _FINE if is_fine else int(MetricSample.Resolution.MINUTE)
        rows = figure_rows(self.cluster, self.start, self.stop, FIGURES, resolution)
        last = rows[-1][0] if rows else self.start
        raw_from = max(last + timedelta(seconds=resolution), self.now - _RAW)
        if not rows:
            # A cluster that was started seconds ago has no roll-ups yet.
            raw_from = max(self.start, self.now - KEPT[1])
        if raw_from < self.stop:
            raw = int(MetricSample.Resolution.RAW)
            rows += figure_rows(self.cluster, raw_from, self.stop, FIGURES, raw)
        return ClusterSeries.of(rows, len(self.nodes))

    def recent(self, values: Floats) -> Floats:
        """Return the samples of one array in the last `RECENT` up to the observed moment."""
        return self.series.between(values, self.time - RECENT, self.time + timedelta(seconds=1))

    def recent_means(self, values: Floats) -> Floats:
        """Return the means over the last `RECENT` of an array of k nodes, NaN without data."""
        return means(self.recent(values))

    @cached_property
    def settled(self) -> datetime:
        """Return from when samples can be compared: the start, or when the cluster had filled.

        A cluster that was started within the read time has little load at first: what fills it is
        no disturbance.
        """
        totals, times = np.nan_to_num(self.series.loads).sum(axis=1), self.series.times
        if not len(totals):
            return self.start
        empty = np.flatnonzero(totals < _FILLED * np.median(totals[-_LAST:]))
        is_new = times[0] > (self.start + RECENT).timestamp()
        if not is_new and (not len(empty) or empty[0] > _LAST):
            return self.start
        filled = datetime.fromtimestamp(float(times[empty[-1] if len(empty) else 0]), UTC)
        return min(filled + _FILLS, self.time - RECENT)

    @property
    def _are_known(self) -> Flags:
        times = self.series.times
        return (times >= self.settled.timestamp()) & (times <= self.time.timestamp() + 1)

    def known(self, values: Floats) -> Floats:
        """Return the samples of one array from `settled` up to the observed moment."""
        chosen: Floats = values[self._are_known]
        return chosen

    def shift_of(self, values: Floats) -> LevelShift:
        """Return the largest change of a series up to the observed moment."""
        shifts = largest_shifts(self.known(values)[None, :])
        return self.level_shift(shifts, 0)

    def level_shift(self, shifts: Shifts, place: int) -> LevelShift:
        """Return one of several shifts of series up to the observed moment, with its time."""
        before, after = float(shifts.before[place]), float(shifts.after[place])
        if not shifts.is_sure(place):
            return LevelShift(before, after, None)
        moment = float(self.known(self.series.times)[int(shifts.places[place])])
        return LevelShift(before, after, datetime.fromtimestamp(moment, UTC))

    @cached_property
    def loads(self) -> list[float | None]:
        """Return the median load of each node in arriving records/s, None without data."""
        recent = self.recent(self.series.loads)
        return [median(recent[:, place]) for place in range(len(self.nodes))]

    def load(self, node: int) -> float | None:
        """Return the median load of a node over the last `RECENT`, in arriving records/s."""
        return self.loads[node] if node < len(self.loads) else None

    @property
    def shares(self) -> list[float | None]:
        """Return the load of each node over its capacity, None without data."""
        return [
            None if load is None else load / node.capacity
            for load, node in zip(self.loads, self.nodes, strict=True)
        ]

    @property
    def active_shares(self) -> list[tuple[float, Node]]:
        """Return the active nodes whose load is known with their load over capacity."""
        pairs = zip(self.shares, self.nodes, strict=True)
        return [(share, node) for share, node in pairs if share is not None and node.active]

    @property
    def fullest(self) -> Node | None:
        """Return the active node with the largest load over its capacity, None without data."""
        return max(self.active_shares, key=lambda pair: pair[0], default=(0.0, None))[1]

    @property
    def full_share(self) -> float | None:
        """Return the load of all active nodes over their capacity, None without data."""
        capacity = sum(node.capacity for _, node in self.active_shares)
        load = sum(share * node.capacity for share, node in self.active_shares)
        return load / capacity if capacity else None

    @cached_property
    def task_measures(self) -> Sequence[TaskMeasure]:
        """Return the newest measures of all tasks; none of a past moment, or without Redis."""
        if not self.is_measured:
            return ()
        try:
            return read_tasks(redis_client(), self.cluster.slug, range(self.cluster.slots))
        except (RedisError, OSError):
            return ()

    @cached_property
    def stream_names(self) -> Mapping[int, str]:
        """Return the names of the cluster's streams by id."""
        return dict(Stream.objects.filter(cluster=self.cluster).values_list("id", "name"))

    @cached_property
    def rates(self) -> RateHistory:
        """Return the rates of all streams from `start` to the observed moment."""
        stop = self.time + timedelta(seconds=arrivals.PERIOD_S)
        return arrivals.rates_between(self.cluster, self.start, stop, list(self.stream_names))
