"""The observation of a cluster around a moment, for loops, explanations and headlines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

import numpy as np
from django.db.models import Count, QuerySet
from redis.exceptions import RedisError

from algorithms.vocabulary import Flags, Floats
from controlplane import models
from controlplane.connections import redis_client
from controlplane.models import Cluster, Exclusion, Node, Query, Stream, Task
from controlplane.policies.exclusions import live_exclusions
from controlplane.policies.measure_limits import reachable_of
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.telemetry import arrivals
from controlplane.telemetry.arrivals import RateHistory
from controlplane.telemetry.arrivals.catching_up import CatchingUp, catching_up
from controlplane.telemetry.grid import RAW, Grid, means
from controlplane.telemetry.measures import PRESENT, new_clusters, present_end, shown_seconds
from controlplane.telemetry.series import read
from controlplane.watch.series_shifts import Shifts, largest_shifts
from controlplane.wire.measures import TaskMeasure, read_tasks

# How far an observation looks back.
LOOKBACK: Final = timedelta(minutes=30)
# A moment so close to now is now: it is explained live.
LIVE: Final = timedelta(seconds=30)
# The newest measures of tasks are of this time.
MEASURED: Final = timedelta(minutes=2)
# The clock of the data plane may be so much ahead.
_CLOCKS: Final = timedelta(seconds=5)
# What follows a past moment is shown, too.
AFTER: Final = timedelta(minutes=5)
# A cluster with a smaller part of its load was just started, and fills within this time.
_FILLED: Final = 0.1
_FILLS: Final = timedelta(minutes=3)
# Samples of its load now, and at the start of the read time.
_LAST: Final = 6
# Load over capacity of a node that can process no more.
FULL: Final = 1.0
# The series of an observation.
FIGURES: Final = (
    "loads", "busy", "node_waiting", "node_processed", "node_p95", "node_state",
    "split_utilisation", "p95", "arrived", "in", "imbalance", "rf", "rf_limit", "kept",
    "delivered",
)  # fmt: skip

BATCH_SERIES: Final = ("p95", "rf", "delivered", "waiting", "arrived", "in", "tasks")


@dataclass(frozen=True)
class LevelShift:
    """The largest change of the mean of a series; `time`: None if it is not more than chance."""

    before: float
    after: float
    time: datetime | None


@dataclass(frozen=True, eq=False)
class ClusterObservation:
    """A cluster around a moment; parts are read when they are used, each once.

    `time`: the observed moment, by default that of present values; `now`: the present.
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
        if time is None:
            return cls(cluster, present_end(present), present)
        # Nothing is known before 1970, and the times beside the first ones are none.
        return cls(cluster, max(min(time, present), datetime.fromtimestamp(0, UTC)), present)

    @property
    def is_live(self) -> bool:
        """Return True if the observed moment is now."""
        return self.now - self.time <= LIVE

    @property
    def until(self) -> datetime:
        """Return until when changes count: now, if the moment is live."""
        return self.now if self.is_live else self.time

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
        return min(self.now + _CLOCKS, self.time + AFTER)

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
    def batches(self) -> Grid:
        """Return the micro-batches of the last `PRESENT`, up to now if the moment is live."""
        return read(self.cluster, BATCH_SERIES, self.time - PRESENT, self.until + _CLOCKS, RAW)

    @cached_property
    def is_new(self) -> bool:
        """Return whether the cluster was measured for less than a minute."""
        return self.cluster.pk in new_clusters([self.cluster.pk], self.time)

    def catching_up(self) -> CatchingUp | None:
        """Return why the last `PRESENT` shows an outage and not the load, None if it does."""
        return catching_up(self.batches, self.cluster.trigger_ms)

    @cached_property
    def series(self) -> Grid:
        """Return the samples from `start` to `stop`: of 10 s or longer, the newest as measured."""
        seconds = shown_seconds(self.start, self.stop, self.now)
        count = len(self.nodes)
        return read(self.cluster, FIGURES, self.start, self.stop, seconds, nodes=count)

    @cached_property
    def window(self) -> Grid:
        """Return the series of the last `PRESENT` up to the observed moment as one period."""
        return self.series.window_of(self.time - PRESENT, self.time)

    def value(self, name: str) -> float | None:
        """Return a series of the cluster over the last `PRESENT`, None if it is not known."""
        value = float(self.window[name][0])
        return None if np.isnan(value) else value

    def recent(self, values: Floats) -> Floats:
        """Return the samples of one array in the last `PRESENT` up to the observed moment."""
        times = self.series.times
        start, stop = (self.time - PRESENT).timestamp(), self.time.timestamp()
        chosen: Floats = values[(times >= start) & (times < stop)]
        return chosen

    def recent_means(self, values: Floats) -> Floats:
        """Return the means over the last `PRESENT` of an array of k nodes, NaN without data."""
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
        is_new = times[0] > (self.start + PRESENT).timestamp()
        if not is_new and (not len(empty) or empty[0] > _LAST):
            return self.start
        filled = datetime.fromtimestamp(float(times[empty[-1] if len(empty) else 0]), UTC)
        return min(filled + _FILLS, self.time - PRESENT)

    @property
    def _are_known(self) -> Flags:
        times = self.series.times
        return (times >= self.settled.timestamp()) & (times < self.time.timestamp())

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
        """Return the load of each node over the last `PRESENT`, None without data."""
        loads = self.window.loads[0, : len(self.nodes)].tolist()
        return [None if np.isnan(load) else load for load in loads]

    def load(self, node: int) -> float | None:
        """Return the load of a node over the last `PRESENT`, in arriving records/s."""
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
