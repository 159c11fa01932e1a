"""Plain references of the queueing simulation: messages one by one, with lists and sets."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from algorithms.lab.partitioning.simulation import Cluster
from algorithms.lab.partitioning.workloads import Stream
from algorithms.partitioning.consistent_grouping import OLDEST, ConsistentGrouping
from tests.algorithms.partitioning.plain import virtual_sequence


def finish_times(workers: Sequence[int], cluster: Cluster) -> list[float]:
    """Return when each message is served, by walking through the parts of the time."""
    free = [0.0] * cluster.count
    return [_serve(free, time, worker, cluster) for time, worker in enumerate(workers)]


def _serve(free: list[float], time: int, worker: int, cluster: Cluster) -> float:
    starts = [*cluster.starts.tolist(), float("inf")]
    now, work = max(free[worker], float(time)), 1.0
    for part, stop in enumerate(starts[1:]):
        if stop <= now:
            continue
        capacity = float(cluster.capacity[part, worker])
        if now + work / capacity <= stop:
            free[worker] = now + work / capacity
            break
        work -= (stop - now) * capacity
        now = stop
    return free[worker]


@dataclass
class Source:
    """The view of one source: first-come queues, and the virtual workers of each worker."""

    load: list[int]
    owned: list[deque[int]]
    idle: list[int] = field(default_factory=list)
    busy: list[int] = field(default_factory=list)
    moves: int = 0

    def receive(self, worker: int, signal: str, grouping: ConsistentGrouping) -> None:
        """Enter the worker into a queue, and pair the first of both queues."""
        entered, other = (self.idle, self.busy) if signal == "idle" else (self.busy, self.idle)
        if worker in other:
            other.remove(worker)
        if worker not in entered:
            entered.append(worker)
        while self.idle and self.busy:
            gives = self.busy.pop(0)
            if len(self.owned[gives]) == 1:
                continue
            receives = self.idle.pop(0)
            kept = self.owned[gives]
            moved = kept.popleft() if grouping.moved == OLDEST else kept.pop()
            self.owned[receives].append(moved)
            self.moves += 1

    def choose(self, sequence: Any, eps: float) -> int:
        """Return the worker of the first virtual worker with room."""
        limit = (1.0 + eps) * (1.0 / len(self.load)) * (sum(self.load) + 1)
        virtual = next(virtual for virtual in sequence if self.load[virtual] < limit)
        self.load[virtual] += 1
        return next(worker for worker, kept in enumerate(self.owned) if virtual in kept)


def route_with_signals(
    stream: Stream, grouping: ConsistentGrouping, cluster: Cluster, slot: int, sources: int
) -> tuple[list[int], int]:
    """Return the worker of each message, and the number of moves, of the paper's mechanism.

    Without hysteresis, and one move per signal.
    """
    owner = grouping.first_owners(cluster.workers()).tolist()
    # Of virtual workers that never moved the lowest moves first.
    order = 1 if grouping.moved == OLDEST else -1
    views = [
        Source([0] * len(owner), [deque([v for v, w in enumerate(owner) if w == worker][::order])
                                  for worker in range(cluster.count)])
        for _ in range(sources)
    ]  # fmt: skip
    free = [0.0] * cluster.count
    outstanding: list[tuple[float, int, int]] = []  # finish, worker, source
    signal: dict[int, str] = {}
    unseen: dict[int, set[int]] = {}
    counts, result = [0] * cluster.count, []

    def acknowledge(until: float) -> None:
        for finish, worker, source in sorted(a for a in outstanding if a[0] <= until):
            outstanding.remove((finish, worker, source))
            if source in unseen.get(worker, ()):
                unseen[worker].remove(source)
                views[source].receive(worker, signal[worker], grouping)

    for time, key in enumerate(stream.keys.tolist()):
        acknowledge(float(time))
        source = time % sources
        sequence = virtual_sequence(grouping, len(owner), key)
        worker = views[source].choose(sequence, grouping.eps)
        result.append(worker)
        counts[worker] += 1
        outstanding.append((_serve(free, time, worker, cluster), worker, source))
        if (time + 1) % slot == 0:
            acknowledge(float(time + 1))
            part = max(p for p, s in enumerate(cluster.starts.tolist()) if s < time + 1)
            for number, count in enumerate(counts):
                level = count / (slot * float(cluster.capacity[part, number]))
                unseen.pop(number, None)
                if level < grouping.lower or level > grouping.upper:
                    signal[number] = "idle" if level < grouping.lower else "busy"
                    unseen[number] = set(range(sources))
            counts = [0] * cluster.count
    acknowledge(float(len(stream)))
    return result, sum(view.moves for view in views)
