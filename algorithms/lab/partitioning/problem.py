"""A stream that is assigned to workers, and the assignment with its loads and memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from algorithms.balance import imbalance
from algorithms.lab.partitioning.workloads import zipf_shares
from algorithms.partitioning.grouping import Grouping, Hashes, Messages, Workers
from algorithms.partitioning.replay import PairCounter, key_hashes, load_over_share
from algorithms.vocabulary import Ints, Progress, silent

# Messages that are routed at once.
PART: Final = 1 << 20


class StreamSource(Protocol):
    """A stream, part by part."""

    @property
    def listed(self) -> bool:
        """Return whether the assignment of each message is reported."""
        ...

    def __len__(self) -> int: ...

    def parts(self) -> Iterator[Messages]:
        """Yield the messages in parts, always the same ones."""
        ...


@dataclass(frozen=True, eq=False)
class ListedStream:
    """Messages that the input lists."""

    messages: Messages
    listed: bool = True

    def __len__(self) -> int:
        return len(self.messages)

    def parts(self) -> Iterator[Messages]:
        """Yield the messages in parts."""
        for start in range(0, len(self.messages), PART):
            yield self.messages.part(start, start + PART)


@dataclass(frozen=True, eq=False)
class ZipfStream:
    """Messages drawn from a Zipf law over `distinct` keys, in parts: the whole is never kept."""

    z: float
    distinct: int
    messages: int
    seed: int = 0
    listed: bool = False

    def __len__(self) -> int:
        return self.messages

    def parts(self) -> Iterator[Messages]:
        """Yield the messages in parts."""
        rng = np.random.default_rng(self.seed)
        hashes: Hashes = key_hashes(self.distinct, self.seed)
        upper = np.cumsum(zipf_shares(self.z, self.distinct))
        upper[-1] = 1.0
        for start in range(0, self.messages, PART):
            draws = rng.random(min(PART, self.messages - start))
            yield Messages(hashes[np.searchsorted(upper, draws, side="right")])


@dataclass(frozen=True, eq=False)
class PartitioningProblem:
    """A stream and the workers that share it."""

    stream: StreamSource
    workers: Workers


@dataclass(frozen=True, eq=False)
class PartitioningPlan:
    """Messages per worker, int64[n]; distinct (key, worker) pairs; the imbalance in messages.

    `assignment`: the worker of each message, int64[m], None if the stream is not listed.
    """

    loads: Ints
    imbalance: float
    memory: int
    assignment: Ints | None


def solve(
    grouping: Grouping[Any], problem: PartitioningProblem, progress: Progress = silent
) -> PartitioningPlan:
    """Return the assignment of a stream by a grouping."""
    stream, workers = problem.stream, problem.workers
    loads = np.zeros(workers.count, np.int64)
    counter, state, kept, done = PairCounter(), grouping.start(workers), [], 0
    for part in stream.parts():
        assigned, state = grouping.route(state, part)
        loads += np.bincount(assigned, minlength=workers.count)
        counter.add(part.keys, assigned)
        if stream.listed:
            kept.append(assigned)
        done += len(part)
        progress(done / len(stream))
    if not done:
        progress(1.0)
    assignment = np.concatenate([np.empty(0, np.int64), *kept]) if stream.listed else None
    return PartitioningPlan(
        loads, imbalance(load_over_share(loads, workers)), counter.pairs, assignment
    )
