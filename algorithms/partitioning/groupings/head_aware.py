"""Head-aware grouping: more workers for the hot keys only (after the idea of D-Choices).

A few hot keys carry most of the skew. Their messages can go to any of several workers without much
memory, as the keys are few: so they fill the workers that all other keys leave below the mean, and
nearly all of those need one worker only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any, ClassVar, Final

import numpy as np

from algorithms.compiled import compiled
from algorithms.errors import BadProblem
from algorithms.partitioning.grouping import (
    Feedback,
    Grouping,
    GroupingState,
    Hashes,
    Messages,
    Workers,
)
from algorithms.partitioning.groupings.hash_choice import WORD, mixed_word, reciprocal
from algorithms.partitioning.groupings.key import slot_table
from algorithms.partitioning.groupings.key_frequencies import (
    PACKED,
    KeyFrequencies,
    combined_frequencies,
    packed_frequencies,
    period_parameter,
    unpacked_frequencies,
)
from algorithms.partitioning.groupings.key_table import key_table, row_of
from algorithms.partitioning.groupings.load_state import (
    LoadState,
    combined_loads,
    empty_loads,
    integers,
    packed_loads,
    unpacked_loads,
)
from algorithms.partitioning.groupings.partial_key import hashed_pair, two_workers
from algorithms.random_numbers import mixed
from algorithms.vocabulary import MAX_SLACK, Floats, Ints, parameter

# Messages per worker above the mean that are not imbalance yet: so many come by chance. Hot keys
# fill a worker up to a quarter of that, and so leave room for the other keys.
_MARGIN: Final = 16.0
_HOT_MARGIN: Final = 4.0
_STEP: Final = 0x9E3779B97F4A7C15
# Keys are movable by the upper bits of a hash: in 1,024 classes. One more class moves with each
# message that finds none, and more of them if the load is far above the limit.
_CLASSES: Final = 1024.0
_MOVABLE_SHIFT: Final = 54
_MOVABLE_SHIFT_WORD = np.uint64(_MOVABLE_SHIFT)


@dataclass(frozen=True, eq=False)
class HotKeys:
    """Hot keys, most frequent first, with the workers that each may use.

    Worker j of key i is `firsts[i]` + j `steps[i]` modulo n, and `choices[i]` of them are in use.
    `places`, `rows`: the table of the keys.
    """

    keys: Hashes
    firsts: Ints
    steps: Ints
    choices: Ints
    places: Hashes
    rows: Ints


@dataclass(frozen=True, eq=False)
class HeadState(GroupingState):
    """Loads of the workers, frequencies of keys, the hot keys, and which other keys may move.

    `movable`: int64[n], of 1,024 keys of each worker, how many may use a second one.
    """

    loads: LoadState
    frequencies: KeyFrequencies
    hot: HotKeys
    movable: Ints


@dataclass(frozen=True)
class HeadAware(Grouping[HeadState]):
    """Sends hot keys to as many workers as balance requires, other keys to one, rarely two.

    A key is hot if its share of the messages is above `hot` times the mean load of a worker. Its
    messages go to the least loaded of its workers; if that is above the mean, the key takes one
    more. Every other key has one worker. While that is above the mean, some of its keys use a
    second one: as few keys as are needed, always the same ones.
    """

    name: ClassVar[str] = "head_aware"

    hot: float = parameter(
        0.2, title="Least share of a hot key", minimum=0.01, maximum=10.0,
        help="Share of a key from which it is hot, as part of the mean load of a worker.",
    )  # fmt: skip
    eps: float = parameter(
        0.0003, title="Uneven load allowed", letter="epsilon", minimum=0.0, maximum=MAX_SLACK,
        help="Load above the mean, as part of the mean, from which other keys use a second worker.",
    )  # fmt: skip
    period: int = period_parameter()

    def start(self, workers: Workers) -> HeadState:
        """Return the state before the first message: no key is known to be hot."""
        of = self.of_workers(workers)
        empty = KeyFrequencies.empty()
        hot = self._hot_keys(of, empty, {})
        return HeadState(of, empty_loads(of), empty, hot, np.zeros(of.count, np.int64))

    def route(self, state: HeadState, messages: Messages) -> tuple[Ints, HeadState]:
        """Return the worker of each message, and the state after them."""
        workers, total, start = state.workers, state.loads.total, 0
        result, scale, table = (
            np.empty(len(messages), np.int64),
            1.0 / workers.shares,
            slot_table(workers),
        )
        factors = reciprocal(workers.count), reciprocal(max(1, workers.count - 1))
        while start < len(messages):
            stop = min(len(messages), start + state.frequencies.left)
            keys, hot = messages.keys[start:stop], state.hot
            choices, movable = hot.choices.copy(), state.movable.copy()
            _route(
                keys, factors[0], factors[1], table.thresholds, table.others, scale, self.eps,
                hot.places, hot.rows, hot.firsts, hot.steps, choices, movable, total,
                result[start:stop],
            )  # fmt: skip
            state = self._after(
                replace(state, hot=replace(hot, choices=choices), movable=movable),
                state.frequencies.observed(keys, self.period),
            )
            start = stop
        return result, replace(state, loads=state.loads.with_total(total, len(messages)))

    def combined(
        self, before: HeadState, after: Sequence[HeadState], feedback: Feedback | None = None
    ) -> HeadState:
        """Return the loads and frequencies of all sources; of workers and movable keys the most."""
        choices: dict[int, int] = {}
        for state in after:
            for key, number in zip(
                state.hot.keys.tolist(), state.hot.choices.tolist(), strict=True
            ):
                choices[key] = max(number, choices.get(key, 1))
        observed = combined_frequencies(
            before.frequencies, [state.frequencies for state in after], self.period
        )
        loads = combined_loads(before.loads, [state.loads for state in after], feedback)
        hot = self._hot_keys(before.workers, observed, choices)
        movable = np.max([before.movable, *(state.movable for state in after)], axis=0)
        return HeadState(before.workers, loads, observed, hot, movable)

    def pack(self, state: HeadState) -> dict[str, Any]:
        """Return the state as JSON values; of many frequent keys only the first 160."""
        kept = set(state.frequencies.hashes[:PACKED].tolist())
        rows = zip(state.hot.keys.tolist(), state.hot.choices.tolist(), strict=True)
        return {
            **packed_loads(state.loads),
            **packed_frequencies(state.frequencies),
            "choices": [number for key, number in rows if key in kept],
            "movable": state.movable.tolist(),
        }

    def unpack(self, workers: Workers, row: Mapping[str, Any]) -> HeadState:
        """Return the state of its packed form. Raises `BadProblem`."""
        of = self.of_workers(workers)
        observed = unpacked_frequencies(row)
        hot = self._hot_keys(of, observed, {})
        choices = integers(row, "choices", len(hot.keys))
        if len(choices) and not (choices.min() >= 1 and choices.max() <= of.count):
            raise BadProblem("state.choices", f"must be from 1 to {of.count}")
        hot = replace(hot, choices=choices)
        movable = integers(row, "movable", of.count)
        return HeadState(of, unpacked_loads(of, row), observed, hot, movable)

    def _after(self, state: HeadState, observed: KeyFrequencies) -> HeadState:
        """Return the state with these frequencies; after a period the hot keys change.

        The numbers of their workers and of movable keys fall a little, as they grow again where
        they are needed.
        """
        if observed.period == state.frequencies.period:
            return replace(state, frequencies=observed)
        rows = zip(state.hot.keys.tolist(), state.hot.choices.tolist(), strict=True)
        choices = {key: number - number // 16 for key, number in rows}
        hot = self._hot_keys(state.workers, observed, choices)
        movable = state.movable - state.movable // 16
        return replace(state, frequencies=observed, hot=hot, movable=movable)

    def _hot_keys(
        self, workers: Workers, observed: KeyFrequencies, choices: Mapping[int, int]
    ) -> HotKeys:
        """Return the hot keys; `choices`: the number of workers of those known already."""
        hot = observed.hashes[observed.shares > self.hot / workers.count]
        keys = hot.tolist()
        return HotKeys(
            hot,
            np.array([two_workers(workers, key)[0] for key in keys], np.int64),
            np.array([_step_of(workers.count, key) for key in keys], np.int64),
            np.array([choices.get(key, 1) for key in keys], np.int64),
            *key_table(hot),
        )


def _step_of(count: int, key: int) -> int:
    """Return a step, by the key, with which all workers are visited once."""
    step = 1 + mixed_word((key + _STEP) & WORD) % count
    while gcd(step, count) > 1:
        step += 1
    return step % count


@compiled
def _route(
    keys: Hashes, factor: np.uint64, other_factor: np.uint64, thresholds: Hashes, others: Ints,
    scale: Floats, eps: float, places: Hashes, rows: Ints, firsts: Ints, steps: Ints, choices: Ints,
    movable: Ints, total: Ints, result: Ints,
) -> None:  # fmt: skip
    """Write the worker of each message into `result`; counts messages in `total`.

    `scale`: 1 / share; `choices` of hot keys and `movable` keys of workers grow.
    """
    count, messages = len(total), total.sum()
    for message in range(len(keys)):
        messages += 1
        key = keys[message]
        row = row_of(key, places, rows)
        if row >= 0:
            limit = messages + _HOT_MARGIN * count
            worker, choices[row] = _least_loaded(
                firsts[row], steps[row], choices[row], limit, scale, total
            )
        else:
            limit = messages * (1.0 + eps) + _MARGIN * count
            worker, second = hashed_pair(key, count, factor, other_factor, thresholds, others)
            load = (total[worker] + 1) * scale[worker]
            if load > limit and (total[second] + 1) * scale[second] < load:
                if np.int64(mixed(key) >> _MOVABLE_SHIFT_WORD) < movable[worker]:
                    worker = second
                else:
                    more = int(_CLASSES * (load / limit - 1.0))
                    movable[worker] = min(int(_CLASSES), movable[worker] + 1 + more)
        result[message] = worker
        total[worker] += 1


@compiled
def _least_loaded(
    first: int, step: int, choices: int, limit: float, scale: Floats, total: Ints
) -> tuple[int, int]:
    """Return the least loaded worker of a hot key, and how many workers the key has then."""
    count, worker = len(total), first
    best, best_load, choice = first, (total[first] + 1) * scale[first], 1
    while choice < choices or (best_load > limit and choice < count):
        worker += step
        if worker >= count:
            worker -= count
        load = (total[worker] + 1) * scale[worker]
        if load < best_load:
            best, best_load = worker, load
        choice += 1
    return best, choice
