"""Panes: time is cut into panes, which go to the workers in turn (paper 001, sections 4.2 and 5.2).

Sizes are numbers of messages or milliseconds; window and slide have the same unit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any, ClassVar, Final

import numpy as np

from algorithms.checks import check_count
from algorithms.partitioning.grouping import Feedback, Grouping, GroupingState, Messages, Workers
from algorithms.partitioning.groupings.load_state import integers
from algorithms.vocabulary import Ints, parameter

_LONGEST: Final = 366 * 86_400_000
# 2^64 over the golden ratio: the multiples of it, modulo 2^64, are as even as possible.
_GOLDEN: Final = 0x9E3779B97F4A7C15


def window_parameter() -> Any:
    """Return the declaration of the parameter `window_ms`."""
    return parameter(
        60_000, title="Length of a window", unit="ms", minimum=1, maximum=_LONGEST,
        help="Length of the windows of the query; messages if messages have no times.",
    )  # fmt: skip


def slide_parameter() -> Any:
    """Return the declaration of the parameter `slide_ms`."""
    return parameter(
        1_000, title="Slide of a window", unit="ms", minimum=1, maximum=_LONGEST,
        help="Distance of two windows; a pane is the greatest common divisor of both.",
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PaneState(GroupingState):
    """The number of messages so far: the time of a message that has none."""

    routed: int


@dataclass(frozen=True)
class Panes(Grouping[PaneState]):
    """Sends all messages of a pane to a worker, and the next pane to the next worker.

    With unequal capacities panes follow a sequence in which each worker has its share of panes.
    """

    name: ClassVar[str] = "panes"

    window_ms: int = window_parameter()
    slide_ms: int = slide_parameter()

    def start(self, workers: Workers) -> PaneState:
        """Return the state before the first message."""
        return PaneState(self.of_workers(workers), 0)

    def route(self, state: PaneState, messages: Messages) -> tuple[Ints, PaneState]:
        """Return the worker of each message, and the state after them."""
        times = times_of(messages, state.routed)
        workers, pane = state.workers, times // pane_size(self.window_ms, self.slide_ms)
        if workers.equal:
            result = pane % workers.count
        else:
            with np.errstate(over="ignore"):
                words = pane.astype(np.uint64) * np.uint64(_GOLDEN)
            result = np.searchsorted(np.cumsum(workers.shares)[:-1], words / 2.0**64, side="right")
        return result, replace(state, routed=state.routed + len(messages))

    def combined(
        self, before: PaneState, after: Sequence[PaneState], feedback: Feedback | None = None
    ) -> PaneState:
        """Return the state after the messages of all sources."""
        return replace(
            before, routed=before.routed + sum(state.routed - before.routed for state in after)
        )

    def pack(self, state: PaneState) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {"routed": state.routed}

    def unpack(self, workers: Workers, row: Mapping[str, Any]) -> PaneState:
        """Return the state of its packed form. Raises `BadProblem`."""
        routed = integers({"routed": [row.get("routed")]}, "routed", 1)
        return PaneState(self.of_workers(workers), int(routed[0]))


def times_of(messages: Messages, routed: int) -> Ints:
    """Return the times of messages, int64[m]; without times, their positions in the stream."""
    if messages.times is not None:
        return messages.times
    return np.arange(routed, routed + len(messages))


def pane_size(window: int, slide: int) -> int:
    """Return the size of a pane, gcd(window, slide). Raises `BadProblem`."""
    check_count("window", window)
    check_count("slide", slide)
    return gcd(window, slide)
