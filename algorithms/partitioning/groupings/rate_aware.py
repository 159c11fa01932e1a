"""Rate-aware panes: large panes are divided, small ones compensated (paper 001, section 4.2).

A pane continues on another worker when its part on the present one is as large as the mean plus the
standard deviation of the panes closed recently, or earlier: no part may be more than `slack` of the
messages that a worker receives in a window, as otherwise windows with few panes per worker cannot
be balanced. Each pane, and each further part of one, goes to the worker with the smallest load over
capacity: so workers of small panes receive more panes and parts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar, Final

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.partitioning.grouping import Feedback, Grouping, GroupingState, Messages, Workers
from algorithms.partitioning.groupings.load_state import (
    LoadState,
    combined_loads,
    empty_loads,
    integers,
    packed_loads,
    unpacked_loads,
)
from algorithms.partitioning.groupings.panes import (
    pane_size,
    slide_parameter,
    times_of,
    window_parameter,
)
from algorithms.vocabulary import Floats, Ints, parameter

# Closed panes from which mean and standard deviation are computed.
RECENT: Final = 32
_MOST_OPEN: Final = 16
# Load that a worker may have above the least loaded one, in largest parts of a pane: more cannot be
# compensated within a window, as after a large pane before the first statistics.
_PARTS_ABOVE: Final = 2.0
_NO_PANE: Final = -(2**62)
_ARRAYS: Final = ("number", "size", "worker", "part", "closed", "sizes")


@dataclass(frozen=True, eq=False)
class OpenPanes:
    """The panes that receive messages, and the sizes of those closed last.

    Pane p is at place p modulo the number of open panes: its `number`, its `size` in messages, the
    worker of its present part, and the messages of that part. `closed`, `sizes`: the last closed
    panes in a ring of `RECENT` places, of which `count` were ever written.
    """

    number: Ints
    size: Ints
    worker: Ints
    part: Ints
    closed: Ints
    sizes: Ints
    count: int = 0

    @classmethod
    def none(cls, places: int) -> "OpenPanes":
        """Return no panes."""
        zero, recent = np.zeros(places, np.int64), np.zeros(RECENT, np.int64)
        return cls(np.full(places, _NO_PANE), zero, zero, zero, recent, recent)

    def copied(self) -> "OpenPanes":
        """Return the same with arrays of its own."""
        return replace(self, **{name: getattr(self, name).copy() for name in _ARRAYS})

    def known_sizes(self) -> dict[int, int]:
        """Return the size of each pane that is known, by number."""
        used = min(self.count, RECENT)
        known = dict(zip(self.closed[:used].tolist(), self.sizes[:used].tolist(), strict=True))
        open_panes = zip(self.number.tolist(), self.size.tolist(), strict=True)
        return known | {number: size for number, size in open_panes if number != _NO_PANE}


@dataclass(frozen=True, eq=False)
class RateState(GroupingState):
    """Loads of the workers, the panes, and how many sources the stream has.

    `forgotten`: int64[n], load far above that of the other workers, which counts no more.
    """

    loads: LoadState
    panes: OpenPanes
    forgotten: Ints
    sources: int = 1


@dataclass(frozen=True)
class RateAware(Grouping[RateState]):
    """Sends panes to the least loaded worker, and continues large panes on further workers.

    A late message of a pane that is closed belongs to the oldest open pane.
    """

    name: ClassVar[str] = "rate_aware"

    window_ms: int = window_parameter()
    slide_ms: int = slide_parameter()
    slack: float = parameter(
        0.08, title="Largest part of a pane", minimum=0.001, maximum=100.0,
        help="Largest part of a pane, as part of the messages of a worker in a window.",
    )  # fmt: skip
    open_panes: int = parameter(
        2, unit="panes", minimum=1, maximum=_MOST_OPEN,
        help="How many panes receive messages at once; an older pane is closed.",
    )  # fmt: skip

    def start(self, workers: Workers) -> RateState:
        """Return the state before the first message."""
        of = self.of_workers(workers)
        none = np.zeros(of.count, np.int64)
        return RateState(of, empty_loads(of), OpenPanes.none(self.open_panes), none)

    @property
    def _pane(self) -> int:
        return pane_size(self.window_ms, self.slide_ms)

    def _largest_parts(self, state: RateState) -> Floats:
        """Return the largest part of a pane on each worker over the mean size of a pane."""
        return self.slack * (self.window_ms / self._pane) * state.workers.shares

    def route(self, state: RateState, messages: Messages) -> tuple[Ints, RateState]:
        """Return the worker of each message, and the state after them."""
        loads, panes = state.loads, state.panes.copied()
        forgotten, result = state.forgotten.copy(), np.empty(len(messages), np.int64)
        total = loads.total - forgotten
        times = times_of(messages, loads.routed)
        count = _route(
            times, self._pane, state.sources, self._largest_parts(state),
            1.0 / state.workers.shares, loads.waiting, total, forgotten,
            panes.number, panes.size, panes.worker, panes.part,
            panes.closed, panes.sizes, panes.count, result,
        )  # fmt: skip
        after = loads.with_total(total + forgotten, len(messages))
        panes = replace(panes, count=count)
        return result, replace(state, loads=after, panes=panes, forgotten=forgotten)

    def combined(
        self, before: RateState, after: Sequence[RateState], feedback: Feedback | None = None
    ) -> RateState:
        """Return the loads and panes of all sources: the sizes of a pane are added up."""
        forgotten = np.max([before.forgotten, *(state.forgotten for state in after)], axis=0)
        first, *others = (
            replace(state.loads, load=state.loads.load - forgotten) for state in (before, *after)
        )
        loads = combined_loads(first, others, feedback)
        panes = self._combined_panes(before.panes, [state.panes for state in after])
        none = np.zeros(before.workers.count, np.int64)
        return RateState(before.workers, loads, panes, none, max(1, len(after)))

    def _combined_panes(self, before: OpenPanes, after: Sequence[OpenPanes]) -> OpenPanes:
        base = before.known_sizes()
        sizes = dict(base)
        for panes in after:
            for number, size in panes.known_sizes().items():
                sizes[number] = sizes.get(number, 0) + size - base.get(number, 0)
        # Its arrays are changed below.
        result = OpenPanes.none(self.open_panes).copied()
        newest, closed = max(sizes, default=_NO_PANE), []
        for number in sorted(sizes):
            if number <= newest - self.open_panes:
                closed.append(number)
                continue
            place = number % self.open_panes
            result.number[place], result.size[place] = number, sizes[number]
            # Those that continue the pane: of several sources the first.
            of = next(panes for panes in (*after, before) if panes.number[place] == number)
            result.worker[place], result.part[place] = of.worker[place], of.part[place]
        closed = closed[-RECENT:]
        result.closed[: len(closed)] = closed
        result.sizes[: len(closed)] = [sizes[number] for number in closed]
        return replace(result, count=len(closed))

    def pack(self, state: RateState) -> dict[str, Any]:
        """Return the state as JSON values."""
        panes = state.panes
        values = np.concatenate([getattr(panes, name) for name in _ARRAYS] + [state.forgotten])
        row = packed_loads(state.loads) | {"panes": values.tolist()}
        return row | {"seen": [panes.count, state.sources]}

    def unpack(self, workers: Workers, row: Mapping[str, Any]) -> RateState:
        """Return the state of its packed form. Raises `BadProblem`."""
        of = self.of_workers(workers)
        sizes = [self.open_panes] * 4 + [RECENT] * 2
        values = integers(row, "panes", sum(sizes) + of.count)
        *arrays, forgotten = np.split(values, np.cumsum(sizes))
        count, sources = integers(row, "seen", 2).tolist()
        none = OpenPanes.none(self.open_panes)
        panes = replace(none, **dict(zip(_ARRAYS, arrays, strict=True)), count=count)
        return RateState(of, unpacked_loads(of, row), panes, forgotten, max(1, sources))


@compiled
def _route(
    times: Ints, pane_length: int, sources: int, largest_parts: Floats, scale: Floats,
    waiting: Ints, total: Ints, forgotten: Ints, number: Ints, size: Ints, worker: Ints, part: Ints,
    closed: Ints, sizes: Ints, count: int, result: Ints,
) -> int:  # fmt: skip
    """Write the worker of each message into `result`, and return the number of closed panes.

    Counts messages in `total`, increases `forgotten` and changes the panes.
    """
    places, newest = len(number), number.max()
    mean, deviation = _statistics(sizes, count)
    place, message = 0, 0
    while message < len(times):
        pane = times[message] // pane_length
        first, stop = pane * pane_length, (pane + 1) * pane_length
        pane = max(pane, newest - places + 1)
        if pane > newest:
            newest = pane
            count = _close(newest - places, number, size, closed, sizes, count)
            mean, deviation = _statistics(sizes, count)
            if count > 0:
                _forget(mean, largest_parts, scale, waiting, total, forgotten)
        place = pane % places
        if number[place] != pane:
            number[place], size[place], part[place] = pane, 0, 0
            worker[place] = _least_loaded(total, scale)
        # Neighbours are usually in one pane, and in one part of it.
        while message < len(times) and first <= times[message] < stop:
            limit = _limit(mean, deviation, largest_parts[worker[place]], sources, count)
            if part[place] >= limit:
                part[place], worker[place] = 0, _least_loaded(total, scale)
                limit = _limit(mean, deviation, largest_parts[worker[place]], sources, count)
            last = _end_of_part(times, message, first, stop, limit - part[place])
            result[message:last] = worker[place]
            size[place] += last - message
            part[place] += last - message
            total[worker[place]] += last - message
            message = last
    return count


@inlined
def _end_of_part(times: Ints, message: int, first: int, stop: int, room: float) -> int:
    """Return the first message after `message` with a time outside, or for which no room is."""
    last = message + 1
    most = min(float(len(times)), message + max(1.0, np.ceil(room)))
    while last < most and first <= times[last] < stop:
        last += 1
    return last


@inlined
def _limit(mean: float, deviation: float, largest_part: float, sources: int, count: int) -> float:
    """Return the largest part of a pane on a worker, without a bound before a pane was closed."""
    return min(mean + deviation, mean * largest_part) / sources if count > 0 else np.inf


@compiled
def _forget(
    mean: float, largest_parts: Floats, scale: Floats, waiting: Ints, total: Ints, forgotten: Ints
) -> None:
    """Subtract sent load far above that of the least loaded worker; count it in `forgotten`."""
    best = _least_loaded(total, scale)
    least = (total[best] - waiting[best]) * scale[best]
    for worker in range(len(total)):
        most = int(least / scale[worker] + _PARTS_ABOVE * mean * largest_parts[worker])
        excess = max(0, total[worker] - waiting[worker] - most)
        total[worker] -= excess
        forgotten[worker] += excess


@compiled
def _close(last: int, number: Ints, size: Ints, closed: Ints, sizes: Ints, count: int) -> int:
    """Close panes up to number `last` in ascending order; return the number of closed panes."""
    while True:
        place = -1
        for other in range(len(number)):
            if _NO_PANE < number[other] <= last and (place < 0 or number[other] < number[place]):
                place = other
        if place < 0:
            return count
        closed[count % RECENT], sizes[count % RECENT] = number[place], size[place]
        number[place] = _NO_PANE
        count += 1


@compiled
def _statistics(sizes: Ints, count: int) -> tuple[float, float]:
    """Return the mean and the standard deviation of the panes closed last."""
    used = min(count, RECENT)
    if used == 0:
        return 0.0, 0.0
    mean, squares = 0.0, 0.0
    for place in range(used):
        mean += sizes[place]
    mean /= used
    for place in range(used):
        squares += (sizes[place] - mean) * (sizes[place] - mean)
    return mean, sqrt(squares / used)


@compiled
def _least_loaded(total: Ints, scale: Floats) -> int:
    """Return the worker with the smallest load over capacity after a message."""
    best = 0
    for worker in range(1, len(total)):
        if (total[worker] + 1) * scale[worker] < (total[best] + 1) * scale[best]:
            best = worker
    return best
