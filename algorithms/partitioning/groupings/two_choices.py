"""The power of two choices: two random workers per message (paper 002, section III-D)."""

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from algorithms.compiled import compiled
from algorithms.partitioning.grouping import Hashes, Messages
from algorithms.partitioning.groupings.hash_choice import (
    WORD,
    high_slot,
    low_slot,
    mixed_word,
    slot_worker,
)
from algorithms.partitioning.groupings.key import slot_table
from algorithms.partitioning.groupings.load_state import LoadGrouping, LoadState
from algorithms.partitioning.groupings.partial_key import add_to_less_loaded
from algorithms.random_numbers import mixed
from algorithms.vocabulary import MAX_SEED, Floats, Ints, parameter

_STEP: Final = 0x9E3779B97F4A7C15
_STEP_WORD = np.uint64(_STEP)
_HALF = np.uint64(32)


@dataclass(frozen=True)
class TwoChoices(LoadGrouping):
    """Sends each message to the less loaded of two workers that are drawn at random.

    With unequal capacities a worker is drawn with the probability of its share. The draw depends
    on the seed, the position of the message in the stream and its key.
    """

    name: ClassVar[str] = "two_choices"

    seed: int = parameter(0, minimum=0, maximum=MAX_SEED, help="Seed of the random draws.")

    def route(self, state: LoadState, messages: Messages) -> tuple[Ints, LoadState]:
        """Return the worker of each message, and the state after them."""
        workers, total = state.workers, state.total
        table, result = slot_table(workers), np.empty(len(messages), np.int64)
        first = np.uint64(self._position(state.routed))
        if workers.equal:
            _route_equal(messages.keys, first, total, result)
        else:
            arrays = table.thresholds, table.others, 1.0 / workers.shares
            _route_weighted(messages.keys, first, *arrays, total, result)
        return result, state.with_total(total, len(messages))

    def _position(self, routed: int) -> int:
        """Return the word from which the workers of this message are drawn."""
        return (mixed_word(self.seed) + (routed + 1) * _STEP) & WORD


@compiled
def _route_equal(keys: Hashes, position: np.uint64, total: Ints, result: Ints) -> None:
    """Write the less loaded of two drawn workers into `result`; counts messages in `total`."""
    count = len(total)
    for message in range(len(keys)):
        word = mixed(position ^ keys[message])
        position += _STEP_WORD
        first = high_slot(word, count)
        second = low_slot(word, count)
        result[message] = add_to_less_loaded(
            total, first, second, int(total[first] > total[second])
        )


@compiled
def _route_weighted(
    keys: Hashes, position: np.uint64, thresholds: Hashes, others: Ints, scale: Floats, total: Ints,
    result: Ints,
) -> None:  # fmt: skip
    """Do the same for unequal capacities; `scale`: 1 / share."""
    count = len(total)
    for message in range(len(keys)):
        word = mixed(position ^ keys[message])
        position += _STEP_WORD
        further = mixed(word)
        first = high_slot(word, count)
        second = low_slot(word, count)
        first = slot_worker(first, further, thresholds, others)
        second = slot_worker(second, further >> _HALF, thresholds, others)
        load, other_load = (total[first] + 1) * scale[first], (total[second] + 1) * scale[second]
        result[message] = add_to_less_loaded(total, first, second, int(load > other_load))
