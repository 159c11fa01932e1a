"""Partial key grouping: two workers for every key (paper 002, section III-B).

So two workers share a hot key, and their partial results must be merged.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.partitioning.grouping import Hashes, Messages, Workers
from algorithms.partitioning.groupings.hash_choice import (
    WORD,
    mixed_word,
    reciprocal,
    remainder,
    slot_worker,
)
from algorithms.partitioning.groupings.key import slot_table
from algorithms.partitioning.groupings.load_state import LoadGrouping, LoadState
from algorithms.random_numbers import mixed
from algorithms.vocabulary import Floats, Ints

# Makes the second hash of a key from its first.
_FACTOR: Final = 0xD6E8FEB86659FD93
_FACTOR_WORD = np.uint64(_FACTOR)
_SHIFT, _HALF = np.uint64(29), np.uint64(32)


@dataclass(frozen=True)
class PartialKeyGrouping(LoadGrouping):
    """Sends each message to the less loaded of the two workers of its key.

    The load of a worker is what the source sent to it and what waits there, over its capacity.
    """

    name: ClassVar[str] = "partial_key"

    def route(self, state: LoadState, messages: Messages) -> tuple[Ints, LoadState]:
        """Return the worker of each message, and the state after them."""
        workers, total = state.workers, state.total
        table, result = slot_table(workers), np.empty(len(messages), np.int64)
        factor, other_factor = reciprocal(table.count), reciprocal(max(1, table.count - 1))
        if workers.equal:
            _route_equal(messages.keys, factor, other_factor, total, result)
        else:
            arrays = table.thresholds, table.others, 1.0 / workers.shares
            _route_weighted(messages.keys, factor, other_factor, *arrays, total, result)
        return result, state.with_total(total, len(messages))


def two_workers(workers: Workers, key: int) -> tuple[int, int]:
    """Return the first and second worker of a key; they differ if there are two workers."""
    count, table = workers.count, slot_table(workers)
    if count == 1:
        return 0, 0
    other = ((key ^ (key >> 29)) * _FACTOR) & WORD
    other ^= other >> 32
    slot = (key % count + 1 + other % (count - 1)) % count
    bits = mixed_word(key)
    first, second = table.worker(key % count, bits), table.worker(slot, bits >> 32)
    return first, second if second != first else (first + 1) % count


@inlined
def add_to_less_loaded(total: Ints, first: int, second: int, is_second: int) -> int:
    """Count a message in the load of one of two workers, by a number 0 or 1, and return it.

    Both loads are written, so a processor knows the addresses before it has compared the loads:
    with a branch or one write this loop takes three times as long.
    """
    load, other_load = total[first], total[second]
    total[second] = other_load + is_second
    total[first] = load + (1 - is_second)
    return first + (second - first) * is_second


@inlined
def _slots(
    key: np.uint64, count: int, factor: np.uint64, other_factor: np.uint64
) -> tuple[int, int]:
    """Return two different slots of a key, twice the only one if there is just one."""
    first = int(np.int64(remainder(key, np.uint64(count), factor)))
    if count == 1:
        return first, first
    other = (key ^ (key >> _SHIFT)) * _FACTOR_WORD
    other ^= other >> _HALF
    second = first + 1 + int(np.int64(remainder(other, np.uint64(count - 1), other_factor)))
    return first, second - count * int(second >= count)


@compiled
def _route_equal(
    keys: Hashes, factor: np.uint64, other_factor: np.uint64, total: Ints, result: Ints
) -> None:
    """Write the less loaded worker of each key into `result`; counts messages in `total`."""
    count = len(total)
    for message in range(len(keys)):
        first, second = _slots(keys[message], count, factor, other_factor)
        result[message] = add_to_less_loaded(
            total, first, second, int(total[first] > total[second])
        )


@compiled
def hashed_pair(
    key: np.uint64, count: int, factor: np.uint64, other_factor: np.uint64, thresholds: Hashes,
    others: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Return the first and second worker of a key: `two_workers` in compiled code."""
    first, second = _slots(key, count, factor, other_factor)
    if len(others):
        bits = mixed(key)
        first = slot_worker(first, bits, thresholds, others)
        second = slot_worker(second, bits >> _HALF, thresholds, others)
        if second == first:
            second = (first + 1) % count
    return first, second


@compiled
def _route_weighted(
    keys: Hashes, factor: np.uint64, other_factor: np.uint64, thresholds: Hashes, others: Ints,
    scale: Floats, total: Ints, result: Ints,
) -> None:  # fmt: skip
    """Do the same for unequal capacities; `scale`: 1 / share."""
    count = len(total)
    for message in range(len(keys)):
        first, second = hashed_pair(keys[message], count, factor, other_factor, thresholds, others)
        load, other_load = (total[first] + 1) * scale[first], (total[second] + 1) * scale[second]
        result[message] = add_to_less_loaded(total, first, second, int(load > other_load))
