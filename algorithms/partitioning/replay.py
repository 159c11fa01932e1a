"""Replay of a key grouping on messages drawn from a sample of keys: loads, pairs, merge load.

A replay has the form of the pipeline: micro-batches, after each of which the grouping combines its
states and receives the utilisation of the workers. Measures of loads, imbalance and memory are
those of paper 002, section IV.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from algorithms.balance import imbalance
from algorithms.compiled import compiled
from algorithms.errors import BadProblem
from algorithms.partitioning.catalog import grouping_of
from algorithms.partitioning.grouping import Feedback, Grouping, Hashes, Messages, Workers
from algorithms.random_numbers import mixed
from algorithms.vocabulary import Floats, Ints, SmallInts, is_finite

_EMPTY: Final = -1
_FIRST_PLACES: Final = 1 << 12


def load_over_share(loads: Ints | Floats, workers: Workers) -> Floats:
    """Return each worker's load over its share of the capacity, in messages.

    A worker with the average capacity counts its messages; their paper's name is normalised load.
    Their imbalance is the paper's I(t).
    """
    return np.asarray(loads, np.float64) / (workers.shares * workers.count)


def load_ratio(loads: Ints | Floats, workers: Workers) -> float:
    """Return the standard deviation of load over capacity share as part of the mean.

    The load balancing ratio of paper 001, section 6.4; 0 without messages.
    """
    values = load_over_share(loads, workers)
    mean = float(values.mean())
    return float(values.std()) / mean if mean else 0.0


class PairCounter:
    """Counts the distinct pairs of key and worker of a stream, part by part: the memory.

    A hash table with open addressing, at most half full: sorting all pairs is ten times slower.
    """

    def __init__(self) -> None:
        self.pairs = 0
        self._keys = np.zeros(_FIRST_PLACES, np.uint64)
        self._workers = np.full(_FIRST_PLACES, _EMPTY, np.int32)

    def add(self, keys: Hashes, workers: Ints) -> int:
        """Add messages, and return the number of distinct pairs so far."""
        done = 0
        while True:
            done, self.pairs = _add(self._keys, self._workers, keys, workers, done, self.pairs)
            if done == len(keys):
                return self.pairs
            self._grow()

    def _grow(self) -> None:
        used = self._workers != _EMPTY
        keys, workers = self._keys[used], self._workers[used]
        self._keys = np.zeros(4 * len(self._keys), np.uint64)
        self._workers = np.full(len(self._keys), _EMPTY, np.int32)
        _add(self._keys, self._workers, keys, workers.astype(np.int64), 0, 0)


def memory(keys: Hashes, workers: Ints) -> int:
    """Return the number of distinct pairs of key and worker."""
    return PairCounter().add(keys, workers)


@compiled
def _add(
    table_keys: Hashes,
    table_workers: SmallInts,
    keys: Hashes,
    workers: Ints,
    start: int,
    pairs: int,
) -> tuple[int, int]:
    """Add pairs from message `start` on; return the next message and the number of pairs.

    Stops early if the table is half full.
    """
    mask = len(table_keys) - 1
    for message in range(start, len(keys)):
        key, worker = keys[message], workers[message]
        place = np.int64(mixed(key + np.uint64(worker))) & mask
        while table_workers[place] >= 0:
            if table_workers[place] == worker and table_keys[place] == key:
                break
            place = (place + 1) & mask
        if table_workers[place] < 0:
            if 2 * pairs >= len(table_keys):
                return message, pairs
            table_keys[place], table_workers[place] = key, worker
            pairs += 1
    return len(keys), pairs


# Micro-batches of a replay; the first third of them only lets the grouping adapt.
BATCHES: Final = 30
ADAPTING: Final = BATCHES // 3
# A micro-batch whose pairs are counted has so many times the messages of the replay at most.
_LONGEST_BATCH: Final = 4
MAX_KEYS: Final = 10_000_000
MAX_RATE: Final = 1e12
MAX_INTERVAL_S: Final = 1e7
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)


def key_hashes(count: int, seed: int = 0) -> Hashes:
    """Return a hash of each key number, uint64[count]: the mixing of splitmix64."""
    with np.errstate(over="ignore"):
        words = (np.arange(1, count + 1).astype(np.uint64) + np.uint64(seed) * _MIX_2) * _STEP
        words = (words ^ (words >> np.uint64(30))) * _MIX_1
        words = (words ^ (words >> np.uint64(27))) * _MIX_2
        return words ^ (words >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class SampledKeys:
    """The keys of a stream: the frequent ones, and the number of the others.

    `hashes` uint64[k], `shares` float64[k]: keys and their shares of all records; `others`: the
    number of further keys, which have equal parts of the rest. Raises `BadProblem`.
    """

    hashes: Hashes
    shares: Floats
    others: int = 0

    def __post_init__(self) -> None:
        if len(self.hashes) != len(self.shares):
            raise BadProblem("keys", "must have as many shares as hashes")
        if not len(self.hashes) and not self.others:
            raise BadProblem("keys", "must have at least one key")
        if not 0 <= self.others <= MAX_KEYS:
            raise BadProblem("others", f"must be from 0 to {MAX_KEYS:,}, not {self.others!r}")
        if not (np.isfinite(self.shares).all() and (self.shares >= 0).all()):
            raise BadProblem("keys", "must have shares that are finite and not negative")
        if not self.others and not self.shares.sum() > 0:
            raise BadProblem("keys", "must have a share above 0")

    @classmethod
    def of_counts(cls, hashes: Any, counts: Any) -> "SampledKeys":
        """Return keys with these numbers of records and no other keys. Raises `BadProblem`."""
        records = np.asarray(counts, np.float64)
        return cls(np.asarray(hashes, np.uint64), records / max(1.0, records.sum()))

    @property
    def distinct(self) -> int:
        """Return the number of keys."""
        return len(self.hashes) + self.others

    @cached_property
    def _upper(self) -> Floats:
        """Return the upper end of each key's part of [0, 1)."""
        upper: Floats = np.cumsum(self.shares)
        if not self.others or (len(upper) and upper[-1] > 1):
            upper = upper / upper[-1]
            upper[-1] = 1.0
        return upper

    def draw(self, messages: int, seed: int) -> Hashes:
        """Return the keys of messages that are drawn independently, uint64[messages]."""
        rng = np.random.default_rng(seed)
        places = np.searchsorted(self._upper, rng.random(messages), side="right")
        known = places < len(self.hashes)
        result = np.empty(messages, np.uint64)
        result[known] = self.hashes[places[known]]
        rest = int(messages - known.sum())
        if rest:
            result[~known] = key_hashes(self.others, seed + 1)[rng.integers(0, self.others, rest)]
        return result


@dataclass(frozen=True, eq=False)
class ReplayProblem:
    """A stream of keys and the workers that share it.

    `capacities` float64[n]: records/s of each worker; `records_per_s`: of the stream;
    `interval_s`: from one micro-batch to the next. `merge_s`: seconds that an aggregator node
    needs per partial result, None: not known; `aggregators`: their number. Raises `BadProblem`.
    """

    keys: SampledKeys
    capacities: Floats
    records_per_s: float
    interval_s: float = 1.0
    merge_s: float | None = None
    aggregators: int = 1

    def __post_init__(self) -> None:
        self._check("records_per_s", self.records_per_s, MAX_RATE)
        self._check("interval_s", self.interval_s, MAX_INTERVAL_S)
        if self.merge_s is not None:
            self._check("merge_s", self.merge_s, MAX_INTERVAL_S)
        if self.aggregators < 1:
            raise BadProblem("aggregators", f"must be at least 1, not {self.aggregators!r}")
        # Raises on a capacity that is not above 0.
        self.workers  # noqa: B018

    def _check(self, name: str, value: float, most: float) -> None:
        if not (is_finite(value) and 0 <= value <= most):
            raise BadProblem(name, f"must be from 0 to {most:g}, not {value!r}")

    @cached_property
    def workers(self) -> Workers:
        """Return the workers with the shares that their capacities give them."""
        return Workers.of(len(self.capacities), self.capacities)

    @property
    def utilisation(self) -> float:
        """Return the records/s over the capacity of all workers."""
        return self.records_per_s / float(self.capacities.sum())


@dataclass(frozen=True, eq=False)
class Replay:
    """What a key grouping gives on a stream.

    `text`: the grouping. `loads` float64[n]: the share of all records by worker. `imbalance`: a
    share of capacity: records/s over capacity of the most loaded worker, minus the mean of all
    workers. `memory`: distinct pairs of a key and a worker, `keys`: the keys among them, in
    `messages` messages. `batch_pairs`, `batch_keys`: those in one micro-batch. `partials_per_s`:
    partial results per second, one for each pair of a micro-batch; `merge_load`: the share of its
    time that an aggregator node merges them, None: not known. `assignment` int64[m]: the worker of
    each measured message.
    """

    text: str
    loads: Floats
    imbalance: float
    memory: int
    keys: int
    messages: int
    batch_pairs: int
    batch_keys: int
    partials_per_s: float
    merge_load: float | None
    assignment: Ints

    @property
    def pairs_per_key(self) -> float:
        """Return the average number of workers of a key."""
        return self.memory / max(1, self.keys)

    @property
    def batch_pairs_per_key(self) -> float:
        """Return the average number of workers of a key in one micro-batch."""
        return self.batch_pairs / max(1, self.batch_keys)


@dataclass(frozen=True, eq=False)
class DrawnMessages:
    """Messages that are drawn from the keys of a problem; all groupings are replayed on the same.

    `keys` uint64[m]: micro-batches of `size` messages; `batch` uint64[b]: a micro-batch with as
    many messages as the stream has. `distinct`, `batch_distinct`: numbers of keys, of the measured
    messages and of the batch.
    """

    keys: Hashes
    size: int
    batch: Hashes
    distinct: int
    batch_distinct: int

    @property
    def measured(self) -> Hashes:
        """Return the messages after those to which a grouping adapts."""
        return self.keys[self.size * ADAPTING :]


def draw_messages(problem: ReplayProblem, messages: int, seed: int = 0) -> DrawnMessages:
    """Return messages of which `messages` are measured, after half as many for adapting."""
    size = max(1, messages // (BATCHES - ADAPTING))
    keys = problem.keys.draw(size * BATCHES, seed)
    records = min(round(problem.records_per_s * problem.interval_s), len(keys) * _LONGEST_BATCH)
    batch = problem.keys.draw(records, seed + 2)
    measured = keys[size * ADAPTING :]
    return DrawnMessages(keys, size, batch, len(np.unique(measured)), len(np.unique(batch)))


def replay(text: str, problem: ReplayProblem, messages: int, seed: int = 0) -> Replay:
    """Return what a grouping gives on messages that are drawn from the keys.

    `messages`: how many are measured, after half as many to which the grouping adapts. Equal seeds
    draw equal messages, whatever the grouping.
    """
    return replay_drawn(text, problem, draw_messages(problem, messages, seed))


def replay_drawn(text: str, problem: ReplayProblem, drawn: DrawnMessages) -> Replay:
    """Return what a grouping gives on these messages."""
    grouping, workers = grouping_of(text), problem.workers
    assignment, state = _route(grouping, problem, drawn.keys, drawn.size)
    assigned = assignment[drawn.size * ADAPTING :]
    loads = np.bincount(assigned, minlength=workers.count)
    pairs = _pairs_of_batch(grouping, state, problem, drawn.batch)
    partials = pairs / problem.interval_s if problem.interval_s else 0.0
    excess = imbalance(load_over_share(loads, workers)) / (len(assigned) / workers.count)
    return Replay(
        text,
        loads / len(assigned),
        excess * problem.utilisation,
        memory(drawn.measured, assigned),
        drawn.distinct,
        len(assigned),
        pairs,
        drawn.batch_distinct,
        partials,
        None if problem.merge_s is None else partials * problem.merge_s / problem.aggregators,
        assigned,
    )


def _route(
    grouping: Grouping[Any], problem: ReplayProblem, keys: Hashes, size: int
) -> tuple[Ints, Any]:
    """Return the worker of each message, and the last state, after batches of `size` messages."""
    workers, interval_ms = problem.workers, _interval_ms(problem)
    # The time of a message is its place within its micro-batch.
    times = np.arange(len(keys), dtype=np.int64) * interval_ms // size
    state, parts = grouping.start(workers), []
    for batch in range(len(keys) // size):
        part = slice(batch * size, (batch + 1) * size)
        assigned, after = grouping.route(state, Messages(keys[part], times[part]))
        parts.append(assigned)
        shares = np.bincount(assigned, minlength=workers.count) / size
        used = np.minimum(1.0, shares * problem.records_per_s / problem.capacities)
        state = grouping.combined(state, [after], Feedback((batch + 1) * interval_ms, used))
    return np.concatenate(parts), state


def _pairs_of_batch(
    grouping: Grouping[Any], state: Any, problem: ReplayProblem, keys: Hashes
) -> int:
    """Return the pairs of a key and a worker in one more micro-batch."""
    times = np.full(len(keys), _interval_ms(problem) * BATCHES, np.int64)
    assigned, _ = grouping.route(state, Messages(keys, times))
    return memory(keys, assigned)


def _interval_ms(problem: ReplayProblem) -> int:
    return max(1, round(1000 * problem.interval_s))
