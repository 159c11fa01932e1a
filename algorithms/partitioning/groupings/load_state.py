"""The state of groupings that decide by the loads of workers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from algorithms.errors import BadProblem
from algorithms.partitioning.grouping import Feedback, Grouping, GroupingState, Workers
from algorithms.vocabulary import Floats, Ints

# Messages per worker on average above which all loads are halved.
REMEMBERED: Final = 1 << 14
# The least worker still has room at eps = 0 as long as a stream has fewer than 10^12 messages.
_BELOW: Final = 1.0 - 1e-12


@dataclass(frozen=True, eq=False)
class LoadState(GroupingState):
    """Loads of workers in messages, int64[n].

    `load`: messages sent to each worker, old ones counted less; `waiting`: those that wait at it
    as it last reported. `routed`: all messages since the start.
    """

    load: Ints
    waiting: Ints
    routed: int

    @property
    def total(self) -> Ints:
        """Return the load by which messages are assigned: sent and waiting."""
        return self.load + self.waiting

    def with_total(self, total: Ints, messages: int) -> "LoadState":
        """Return the state after so many further messages, which left these total loads."""
        return replace(self, load=total - self.waiting, routed=self.routed + messages)


class LoadGrouping(Grouping[LoadState]):
    """A grouping of which the loads are the whole state."""

    def start(self, workers: Workers) -> LoadState:
        """Return the state before the first message: no worker has a load."""
        return empty_loads(self.of_workers(workers))

    def combined(
        self, before: LoadState, after: Sequence[LoadState], feedback: Feedback | None = None
    ) -> LoadState:
        """Return the loads of all sources together with the reported backlogs."""
        return combined_loads(before, after, feedback)

    def pack(self, state: LoadState) -> dict[str, Any]:
        """Return the state as JSON values."""
        return packed_loads(state)

    def unpack(self, workers: Workers, row: Mapping[str, Any]) -> LoadState:
        """Return the state of its packed form. Raises `BadProblem`."""
        return unpacked_loads(self.of_workers(workers), row)


def room_per_message(eps: float, workers: Workers) -> Floats:
    """Return the load per message of the stream below which each worker has room, float64[n].

    Slightly less than (1 + eps) times the share, so that rounding admits no message too many.
    """
    return (1.0 + eps) * workers.shares * _BELOW


def empty_loads(workers: Workers) -> LoadState:
    """Return the state before the first message."""
    zero = np.zeros(workers.count, np.int64)
    return LoadState(workers, zero, zero, 0)


def combined_loads(
    before: LoadState, after: Sequence[LoadState], feedback: Feedback | None
) -> LoadState:
    """Return the loads that all sources added together, halved beyond a bound."""
    load = before.load + sum((state.load - before.load for state in after), np.int64(0))
    routed = before.routed + sum(state.routed - before.routed for state in after)
    waiting = before.waiting
    if feedback is not None and feedback.waiting is not None:
        waiting = np.asarray(feedback.waiting, np.int64)
    while load.sum() > REMEMBERED * len(load):
        load = load // 2
    return replace(before, load=load, waiting=waiting, routed=routed)


def packed_loads(state: LoadState) -> dict[str, Any]:
    """Return the loads as JSON values; without backlogs if there are none."""
    row = {"load": state.load.tolist(), "routed": state.routed}
    return row | ({"waiting": state.waiting.tolist()} if state.waiting.any() else {})


def unpacked_loads(workers: Workers, row: Mapping[str, Any]) -> LoadState:
    """Return the loads of their packed form. Raises `BadProblem`."""
    waiting = row.get("waiting")
    return LoadState(
        workers,
        integers(row, "load", workers.count),
        np.zeros(workers.count, np.int64)
        if waiting is None
        else integers(row, "waiting", workers.count),
        int(integers({"routed": [row.get("routed")]}, "routed", 1)[0]),
    )


def integers(row: Mapping[str, Any], name: str, count: int | None = None) -> Ints:
    """Return a vector of a packed state. Raises `BadProblem`."""
    try:
        values = np.array(row[name], dtype=np.int64)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadProblem(f"state.{name}", "must be a list of whole numbers") from error
    if values.ndim != 1 or (count is not None and len(values) != count):
        raise BadProblem(f"state.{name}", f"must have {count} whole numbers")
    return values
