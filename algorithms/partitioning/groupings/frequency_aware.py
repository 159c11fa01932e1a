"""Frequency-aware hash partitioning (paper 001, section 4.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from algorithms.compiled import compiled
from algorithms.partitioning.grouping import (
    Feedback,
    Grouping,
    GroupingState,
    Hashes,
    Messages,
    Workers,
)
from algorithms.partitioning.groupings.key_frequencies import (
    KEPT,
    PACKED,
    SAMPLE,
    KeyFrequencies,
    combined_frequencies,
    packed_frequencies,
    period_parameter,
    unpacked_frequencies,
)
from algorithms.partitioning.groupings.key_table import key_table, row_of
from algorithms.partitioning.groupings.load_state import integers
from algorithms.partitioning.groupings.ring import (
    place_on_ring,
    position_of,
    ring_of,
    ring_position,
)
from algorithms.vocabulary import Floats, Ints, parameter

_MOST_PARTS: Final = 64


@dataclass(frozen=True, eq=False)
class SplitKeys:
    """The keys that are divided: `keys` uint64[k]; part j of key i goes to `owners`[starts[i] + j].

    `starts`: int64[k + 1]; `places`, `rows`: the table of the keys. `direct`: like that of the
    ring, but -1 also where a divided key lies: most messages need no other table.
    """

    keys: Hashes
    starts: Ints
    owners: Ints
    places: Hashes
    rows: Ints
    direct: NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class FrequencyState(GroupingState):
    """Key frequencies, the divided keys, and the next part of each, int64[k]."""

    frequencies: KeyFrequencies
    split: SplitKeys
    next_parts: Ints


@dataclass(frozen=True)
class FrequencyAware(Grouping[FrequencyState]):
    """Divides the most frequent keys into sub-keys in proportion to their frequencies.

    A hash ring assigns keys and sub-keys to workers. Every source determines frequencies from its
    own messages, so sources need no communication.
    """

    name: ClassVar[str] = "frequency_aware"

    top: int = parameter(
        100, title="Divided keys", letter="K", unit="keys", minimum=0, maximum=KEPT,
        help="How many of the most frequent keys may be divided.",
    )  # fmt: skip
    parts: float = parameter(
        4.0, title="Sub-keys per load of a worker", letter="c",
        minimum=0.0, maximum=float(_MOST_PARTS),
        help="A key with the part f of all messages has ceil(c N f) sub-keys on N workers.",
    )  # fmt: skip
    spread: bool = parameter(
        default=True,
        title="Spread sub-keys",
        help="Whether sub-keys of a key go to different workers; else the ring alone decides.",
    )
    period: int = period_parameter(128 * SAMPLE)

    def start(self, workers: Workers) -> FrequencyState:
        """Return the state before the first message: no key is divided."""
        return self._with_frequencies(self.of_workers(workers), KeyFrequencies.empty())

    def route(self, state: FrequencyState, messages: Messages) -> tuple[Ints, FrequencyState]:
        """Return the worker of each message, and the state after them."""
        result, start = np.empty(len(messages), np.int64), 0
        ring = ring_of(state.workers)
        while start < len(messages):
            stop = min(len(messages), start + state.frequencies.left)
            keys, split = messages.keys[start:stop], state.split
            next_parts = state.next_parts.copy()
            _route(
                keys, ring.points, ring.owners, ring.starts, ring.shift,
                split.direct, ring.direct_shift, split.places, split.rows, split.starts,
                split.owners, next_parts, result[start:stop],
            )  # fmt: skip
            observed = state.frequencies.observed(keys, self.period)
            state = self._after(replace(state, next_parts=next_parts), observed)
            start = stop
        return result, state

    def combined(
        self,
        before: FrequencyState,
        after: Sequence[FrequencyState],
        feedback: Feedback | None = None,
    ) -> FrequencyState:
        """Return the frequencies that all sources together observed."""
        observed = [state.frequencies for state in after]
        period, next_parts = before.frequencies.period, before.next_parts
        for state in after:
            # A source that closed a period has other parts.
            if state.frequencies.period == period:
                next_parts = next_parts + state.next_parts - before.next_parts
        moved = replace(before, next_parts=next_parts % np.diff(before.split.starts))
        return self._after(moved, combined_frequencies(before.frequencies, observed, self.period))

    def pack(self, state: FrequencyState) -> dict[str, Any]:
        """Return the state as JSON values; of many frequent keys only the first 160."""
        kept = set(state.frequencies.hashes[:PACKED].tolist())
        next_parts = zip(state.split.keys.tolist(), state.next_parts.tolist(), strict=True)
        return packed_frequencies(state.frequencies) | {
            "next": [part for key, part in next_parts if key in kept]
        }

    def unpack(self, workers: Workers, row: Mapping[str, Any]) -> FrequencyState:
        """Return the state of its packed form. Raises `BadProblem`."""
        state = self._with_frequencies(self.of_workers(workers), unpacked_frequencies(row))
        next_parts = integers(row, "next", len(state.split.keys))
        return replace(state, next_parts=next_parts % np.diff(state.split.starts))

    def _after(self, state: FrequencyState, observed: KeyFrequencies) -> FrequencyState:
        """Return the state with these frequencies; keys are divided again after a period."""
        if observed.period == state.frequencies.period:
            return replace(state, frequencies=observed)
        return self._with_frequencies(state.workers, observed)

    def _with_frequencies(self, workers: Workers, observed: KeyFrequencies) -> FrequencyState:
        # Equal for all batches of a period, each of which reads the state from its packed form.
        split = _split_keys(
            self, workers, observed.hashes.tobytes(), observed.weights.tobytes(), observed.total
        )
        return FrequencyState(workers, observed, split, np.zeros(len(split.keys), np.int64))

    def split_keys(self, workers: Workers, keys: Hashes, shares: Floats) -> SplitKeys:
        """Return how keys, most frequent first, are divided; a key of one part is not."""
        counts = [ceil(self.parts * workers.count * f) for f in shares[: self.top].tolist()]
        rows = [(key, n) for key, n in zip(keys[: self.top].tolist(), counts, strict=True) if n > 1]
        divided = np.array([key for key, _ in rows], np.uint64)
        starts = np.cumsum([0, *(parts for _, parts in rows)])
        owners, ring = np.empty(int(starts[-1]), np.int64), ring_of(workers)
        _assign_keys(
            divided, starts, workers.shares, self.spread,
            ring.points, ring.owners, ring.starts, ring.shift, owners,
        )  # fmt: skip
        direct = ring.direct.copy()
        for key in divided.tolist():
            direct[position_of(key) >> int(ring.direct_shift)] = -1
        return SplitKeys(divided, starts, owners, *key_table(divided), direct)


@lru_cache(maxsize=256)
def _split_keys(
    grouping: FrequencyAware, workers: Workers, hashes: bytes, weights: bytes, total: int
) -> SplitKeys:
    """Return how the keys of these frequencies are divided."""
    shares = np.frombuffer(weights, np.int64) / max(1, total)
    return grouping.split_keys(workers, np.frombuffer(hashes, np.uint64), shares)


@compiled
def _assign_keys(
    keys: Hashes, first: Ints, shares: Floats, spread: bool, points: Hashes, owners: Ints,
    starts: Ints, shift: np.uint64, result: Ints,
) -> None:  # fmt: skip
    """Write the worker of each sub-key; spread, none has more of a key than its share."""
    for row in range(len(keys)):
        parts = first[row + 1] - first[row]
        limits = np.full(len(shares), parts)
        if spread:
            for worker in range(len(shares)):
                limits[worker] = int(np.ceil(parts * shares[worker]))
        part_owners = result[first[row] : first[row + 1]]
        _assign_parts(keys[row], points, owners, starts, shift, limits, part_owners)


@compiled
def _assign_parts(
    key: np.uint64, points: Hashes, owners: Ints, starts: Ints, shift: np.uint64, limits: Ints,
    result: Ints,
) -> None:  # fmt: skip
    """Write the worker of each sub-key: the next on the ring that has fewer than its limit."""
    for part in range(len(result)):
        place = place_on_ring(ring_position(key, part + 1), points, starts, shift)
        while limits[owners[place]] == 0:
            place = place + 1 if place + 1 < len(owners) else 0
        limits[owners[place]] -= 1
        result[part] = owners[place]


@compiled
def _route(
    keys: Hashes, points: Hashes, ring_owners: Ints, ring_starts: Ints, shift: np.uint64,
    direct: NDArray[np.int16], direct_shift: np.uint64, places: Hashes, rows: Ints, starts: Ints,
    owners: Ints, next_parts: Ints, result: Ints,
) -> None:  # fmt: skip
    """Write the worker of each message into `result`; advances the parts of divided keys."""
    for message in range(len(keys)):
        key = keys[message]
        position = ring_position(key, 0)
        worker = int(direct[position >> direct_shift])
        if worker < 0:
            row = row_of(key, places, rows)
            if row < 0:
                worker = ring_owners[place_on_ring(position, points, ring_starts, shift)]
            else:
                part = next_parts[row]
                worker = owners[starts[row] + part]
                next_parts[row] = part + 1 if starts[row] + part + 1 < starts[row + 1] else 0
        result[message] = worker
