"""A queueing simulation of key groupings: one first-come-first-served queue per worker.

Section 4 of paper 002: one message arrives per unit of time, and a worker of capacity c serves a
message in 1 / c. Every grouping runs in it; consistent grouping receives the signals of workers on
their acknowledgements.

    stream = draw_zipf(1.0, 100_000, 1_000_000)
    cluster = Cluster.of([5, 5, 5, 1, 1, 1, 1, 1, 1, 1], utilisation=0.8)
    course = simulate(stream, grouping_of('{"grouping":"consistent_grouping"}'), cluster)
    print(course.imbalance[-1], course.memory[-1])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from algorithms.balance import imbalance
from algorithms.errors import BadProblem
from algorithms.lab.partitioning.consistent_simulation import deliver_until, route_and_serve
from algorithms.lab.partitioning.queueing import (
    Bits,
    Queues,
    acknowledge_until,
    count_pairs,
    count_partial_results,
    new_queues,
    new_signals,
    serve,
)
from algorithms.lab.partitioning.workloads import Stream
from algorithms.partitioning.consistent_grouping import ConsistentGrouping
from algorithms.partitioning.grouping import Grouping, Messages, Workers
from algorithms.partitioning.virtual_workers import new_views
from algorithms.vocabulary import Floats, Ints, Progress, silent

# Bits of a word in which the pairs of a key are noted.
_WORD: Final = 64
# Keys times words of pairs: 512 MB.
MAX_PAIR_WORDS: Final = 1 << 26


@dataclass(frozen=True, eq=False)
class Cluster:
    """Workers whose capacities may change.

    `starts` int64[p]: the message from which on each row of `capacity` float64[p, n] holds, in
    messages per unit of time; the first is 0.
    """

    starts: Ints
    capacity: Floats

    @classmethod
    def of(
        cls,
        weights: Sequence[float],
        utilisation: float = 0.8,
        changes: Sequence[tuple[int, Sequence[float]]] = (),
    ) -> "Cluster":
        """Return a cluster whose total capacity times `utilisation` is the rate of arrivals.

        `weights`: relative capacities of the workers; `changes`: the messages from which on others
        hold, ascending; the total capacity always stays the same. Raises `BadProblem`.
        """
        if not utilisation > 0:
            raise BadProblem("utilisation", f"must be above 0, not {utilisation}")
        rows = [weights, *(row for _, row in changes)]
        starts = np.array([0, *(start for start, _ in changes)], np.int64)
        if (np.diff(starts) <= 0).any():
            raise BadProblem("changes", "must have ascending messages above 0")
        shares = [Workers.of(len(weights), row).shares for row in rows]
        return cls(starts, np.array(shares) / utilisation)

    @classmethod
    def unequal(cls, workers: int, fast: int, times: float, utilisation: float = 0.8) -> "Cluster":
        """Return a cluster of which the first `fast` workers are `times` as fast as the others."""
        if not 0 <= fast <= workers:
            raise BadProblem("fast", f"must be from 0 to {workers}, not {fast}")
        return cls.of([times] * fast + [1.0] * (workers - fast), utilisation)

    @property
    def count(self) -> int:
        """Return the number of workers."""
        return int(self.capacity.shape[1])

    def workers(self) -> Workers:
        """Return the workers with their first capacities."""
        return Workers.of(self.count, self.capacity[0])

    def served(self, first: int, stop: int) -> Floats:
        """Return the messages that each worker can serve between two messages, float64[n]."""
        ends = np.append(self.starts[1:], max(stop, int(self.starts[-1])))
        lengths = np.clip(np.minimum(ends, stop) - np.maximum(self.starts, first), 0, None)
        return np.asarray(lengths @ self.capacity)


@dataclass(frozen=True)
class Setting:
    """Settings of a simulation.

    `slot`: messages of a time slot, after which workers may signal; `sources`: senders, which
    receive the messages in turn; `samples`: how often the course is measured; `period`: messages of
    a period of aggregation, after which every worker emits a partial result per key.
    """

    slot: int = 2_000
    sources: int = 1
    samples: int = 100
    period: int = 100_000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise BadProblem(name, f"must be at least 1, not {value}")


@dataclass(frozen=True, eq=False)
class Course:
    """What a simulation measured at p points of time, each over the interval before it.

    `message` int64[p]: messages until then; float64[p, n]: the lengths of the queues (`queue`) at
    the point; over the interval the mean latency of the messages sent to each worker, 0 without
    any, in units of time, and the `utilisation`: messages sent to it by those that it can serve.
    Since the start: `load` int64[p, n] per worker, `capacity` float64[p, n] that it could serve;
    int64[p]: distinct pairs of key and worker (`memory`), `partial_results` and `moves` of virtual
    workers.
    """

    message: Ints
    queue: Floats
    latency: Floats
    utilisation: Floats
    load: Ints
    capacity: Floats
    memory: Ints
    partial_results: Ints
    moves: Ints

    @property
    def imbalance(self) -> Floats:
        """Return the largest minus the mean utilisation in each interval, float64[p]."""
        return np.array([imbalance(shares) for shares in self.utilisation])

    @property
    def total_imbalance(self) -> Floats:
        """Return the same of the utilisation since the start: I(t) of section 4 divided by t."""
        return np.array([imbalance(shares) for shares in self.load / self.capacity])

    def imbalance_over(self, points: int) -> float:
        """Return the imbalance of the utilisation over the last intervals together."""
        first = len(self.message) - points - 1
        if first < 0:
            return float(self.total_imbalance[-1])
        load = self.load[-1] - self.load[first]
        return imbalance(load / (self.capacity[-1] - self.capacity[first]))


def spread(values: Floats) -> Any:
    """Return the largest minus the smallest of the last axis, as figures 9 to 13 show it."""
    return values.max(axis=-1) - values.min(axis=-1)


def simulate(
    stream: Stream,
    grouping: Grouping[Any],
    cluster: Cluster,
    setting: Setting | None = None,
    progress: Progress = silent,
) -> Course:
    """Return the course of a stream under a grouping. Raises `BadProblem`."""
    setting = setting or Setting()
    if not len(stream):
        raise BadProblem("stream", "must have at least one message")
    points = np.linspace(0, len(stream), min(setting.samples, len(stream)) + 1).astype(np.int64)
    recorder = _Recorder(stream, cluster, setting)
    router = (
        _SignalledRouter(stream, grouping, cluster, setting)
        if isinstance(grouping, ConsistentGrouping)
        else _Router(stream, grouping, cluster, setting)
    )
    for first, stop in zip(points[:-1].tolist(), points[1:].tolist(), strict=True):
        progress(first / len(stream))
        workers = router.route(first, stop)
        recorder.record(router.queues, workers, first, stop, router.moves)
    progress(1.0)
    return recorder.course()


class _Router:
    """Any grouping: each source routes its messages of an interval at once."""

    def __init__(
        self, stream: Stream, grouping: Grouping[Any], cluster: Cluster, setting: Setting
    ) -> None:
        self.stream, self.grouping = stream, grouping
        self.states = [grouping.start(cluster.workers())] * setting.sources
        starts = cluster.starts.astype(np.float64)
        self.queues = new_queues(len(stream), starts, cluster.capacity)
        self.moves = 0

    def route(self, first: int, stop: int) -> Ints:
        """Route messages from `first` up to `stop`, and serve queues until then; return workers."""
        result, sources = np.empty(stop - first, np.int64), len(self.states)
        keys = self.stream.hashes[self.stream.numbers[first:stop]]
        times = np.arange(first, stop) if self.stream.times is None else None
        if self.stream.times is not None:
            times = self.stream.times[first:stop]
        for source, state in enumerate(self.states):
            part = slice((source - first) % sources, None, sources)
            messages = Messages(keys[part].copy(), None if times is None else times[part].copy())
            result[part], self.states[source] = self.grouping.route(state, messages)
        serve(self.queues, result, first)
        acknowledge_until(self.queues, float(stop))
        return result


class _SignalledRouter:
    """Consistent grouping: each source has its own view, changed by signals of the workers."""

    def __init__(
        self, stream: Stream, grouping: ConsistentGrouping, cluster: Cluster, setting: Setting
    ) -> None:
        self.stream, self.slot, self.moves = stream, setting.slot, 0
        owner = grouping.first_owners(cluster.workers())
        self.rules = grouping.rules(len(owner))
        self.views = new_views(setting.sources, owner, cluster.count)
        self.signals = new_signals(setting.sources, cluster.count)
        starts = cluster.starts.astype(np.float64)
        self.queues = new_queues(len(stream), starts, cluster.capacity)

    def route(self, first: int, stop: int) -> Ints:
        """Route messages from `first` up to `stop`, and serve queues until then; return workers."""
        result = np.empty(stop - first, np.int64)
        self.moves += route_and_serve(
            self.stream.numbers[first:stop], self.stream.hashes, first, self.slot,
            self.views, self.signals, self.queues, self.rules, result,
        )  # fmt: skip
        view = self.views, self.signals, self.queues, self.rules
        self.moves += deliver_until(float(stop), *view)
        acknowledge_until(self.queues, float(stop))
        return result


class _Recorder:
    """Measures the course at the end of each interval."""

    def __init__(self, stream: Stream, cluster: Cluster, setting: Setting) -> None:
        words = -(-cluster.count // _WORD)
        if len(stream.hashes) * words > MAX_PAIR_WORDS:
            why = f"must be at most {MAX_PAIR_WORDS // words:,} with {cluster.count} workers"
            raise BadProblem("distinct keys", why)
        self.numbers, self.cluster = stream.numbers, cluster
        self.period = setting.period
        self.pairs: Bits = np.zeros((len(stream.hashes), words), np.uint64)
        self.period_pairs: Bits = np.zeros_like(self.pairs)
        self.touched = np.zeros(setting.period + 1, np.int64)
        self.memory = self.results = 0
        self.rows: list[tuple[Any, ...]] = []

    def record(self, queues: Queues, workers: Ints, first: int, stop: int, moves: int) -> None:
        """Measure the interval of the messages from `first` up to `stop`."""
        numbers = self.numbers[first:stop]
        self.memory += count_pairs(numbers, workers, self.pairs)
        self.results += count_partial_results(
            numbers, workers, first, self.period, self.period_pairs, self.touched
        )
        assigned = queues.assigned.copy()
        capacity = self.cluster.served(first, stop)
        self.rows.append(
            (stop, queues.length.copy(), queues.latency / np.maximum(1, assigned),
             assigned / capacity, assigned, capacity, self.memory, self.results, moves)
        )  # fmt: skip
        queues.assigned[:] = 0
        queues.latency[:] = 0.0

    def course(self) -> Course:
        """Return what was measured."""
        columns = [np.array(column) for column in zip(*self.rows, strict=True)]
        message, queue, latency, utilisation, load, capacity, memory, results, moves = columns
        return Course(
            message=message, queue=queue.astype(np.float64), latency=latency,
            utilisation=utilisation, load=load.cumsum(axis=0), capacity=capacity.cumsum(axis=0),
            memory=memory, partial_results=results, moves=moves,
        )  # fmt: skip
