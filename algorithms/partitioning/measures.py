"""How well messages are distributed: loads, imbalance, memory (paper 002, section IV)."""

from typing import Final

import numpy as np

from algorithms.compiled import compiled
from algorithms.partitioning.grouping import Hashes, Workers
from algorithms.random_numbers import mixed
from algorithms.vocabulary import Floats, Ints, SmallInts

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
