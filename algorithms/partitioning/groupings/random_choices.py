"""The power of random choices (paper 002, section V-A, algorithm 1).

A worker has room while its load is below (1 + eps) m_t / n; m_t counts the present message too, as
otherwise no worker had room for the first one. A message goes to the first worker with room in the
sequence of workers of its key, so only hot keys need more than their first worker.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from algorithms.compiled import compiled
from algorithms.partitioning.grouping import Hashes, Messages
from algorithms.partitioning.groupings.hash_choice import (
    high_slot,
    low_slot,
    mixed_word,
    slot_worker,
)
from algorithms.partitioning.groupings.key import slot_table
from algorithms.partitioning.groupings.load_state import LoadGrouping, LoadState, room_per_message
from algorithms.random_numbers import mixed
from algorithms.vocabulary import MAX_SEED, MAX_SLACK, Floats, Ints, parameter

# Pairs of attempts per worker before all workers are looked at in turn. With a single worker with
# room, each attempt misses it with probability 1 - 1/n, so all of them with probability 2 %.
PAIRS_PER_WORKER: Final = 2

_STEP_WORD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@dataclass(frozen=True)
class RandomChoices(LoadGrouping):
    """Sends each message to the first worker with room in the random sequence of its key.

    Each hash of the key with the number of the attempt and the seed gives two workers of the
    sequence. After four attempts per worker all workers are tried in turn, so a worker is always
    found.
    """

    name: ClassVar[str] = "random_choices"

    eps: float = parameter(
        0.01, title="Uneven load allowed", letter="epsilon", minimum=0.0, maximum=MAX_SLACK,
        help="Load above the mean at which a worker has no room, as part of the mean.",
    )  # fmt: skip
    seed: int = parameter(0, minimum=0, maximum=MAX_SEED, help="Seed of the sequences of workers.")

    def route(self, state: LoadState, messages: Messages) -> tuple[Ints, LoadState]:
        """Return the worker of each message, and the state after them."""
        workers, total = state.workers, state.total
        result = np.empty(len(messages), np.int64)
        room = room_per_message(self.eps, workers)
        seed = np.uint64(mixed_word(self.seed))
        if workers.equal:
            _route_equal(messages.keys, seed, room[0], total, result)
        else:
            table = slot_table(workers)
            arrays = table.thresholds, table.others, total, result
            _route_weighted(messages.keys, seed, room, *arrays)
        return result, state.with_total(total, len(messages))


@compiled
def _route_equal(keys: Hashes, seed: np.uint64, room: float, total: Ints, result: Ints) -> None:
    """Write the worker of each message into `result`; counts messages in `total`.

    `room`: load per message of the stream below which a worker has room.
    """
    count, messages = len(total), total.sum()
    for message in range(len(keys)):
        messages += 1
        limit = np.int64(np.ceil(room * messages))
        word, worker, pair = keys[message] + seed, 0, 0
        while pair < PAIRS_PER_WORKER * len(total):
            word += _STEP_WORD
            bits = mixed(word)
            worker = high_slot(bits, count)
            if total[worker] < limit:
                break
            worker = low_slot(bits, count)
            if total[worker] < limit:
                break
            pair += 1
        while total[worker] >= limit:
            worker = worker + 1 if worker + 1 < len(total) else 0
        result[message] = worker
        total[worker] += 1


@compiled
def _route_weighted(
    keys: Hashes, seed: np.uint64, room: Floats, thresholds: Hashes, others: Ints, total: Ints,
    result: Ints,
) -> None:  # fmt: skip
    """Do the same for unequal capacities; `room`: float64[n]."""
    count, messages = len(total), total.sum()
    for message in range(len(keys)):
        messages += 1
        word, worker, pair = keys[message] + seed, 0, 0
        while pair < PAIRS_PER_WORKER * len(total):
            word += _STEP_WORD
            bits = mixed(word)
            further = mixed(bits)
            slot = high_slot(bits, count)
            worker = slot_worker(slot, further, thresholds, others)
            if total[worker] < room[worker] * messages:
                break
            slot = low_slot(bits, count)
            worker = slot_worker(slot, further >> _HALF, thresholds, others)
            if total[worker] < room[worker] * messages:
                break
            pair += 1
        while total[worker] >= room[worker] * messages:
            worker = worker + 1 if worker + 1 < len(total) else 0
        result[message] = worker
        total[worker] += 1
