"""The events of a cluster as arrays: arrivals and departures of queries and servers."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from algorithms.vocabulary import Floats, SmallInts


class Happening(IntEnum):
    """Kind of an event. Events of one moment happen in this order.

    So an arrival can take a place that is freed at the same moment.
    """

    DEPARTURE = 0
    SERVER_ADDED = 1
    SERVER_REMOVED = 2
    ARRIVAL = 3


@dataclass(frozen=True, eq=False)
class Events:
    """Events in the order in which they happen.

    `kinds` int8[e]: a `Happening` each. `subjects` int32[e]: the number of the query or of the
    server. `times` float64[e]: time steps or seconds, ascending.
    """

    kinds: NDArray[np.int8]
    subjects: SmallInts
    times: Floats

    def __len__(self) -> int:
        return len(self.kinds)

    def live(self) -> NDArray[np.int64]:
        """Return how many queries are alive after each event, int64[e]."""
        change = (self.kinds == Happening.ARRIVAL).astype(np.int64)
        change -= self.kinds == Happening.DEPARTURE
        return np.cumsum(change)


def in_order(*parts: Events) -> Events:
    """Return the events of all parts as one sequence.

    By time, then by kind; events alike in both keep the order in which they are given.
    """
    kinds = np.concatenate([part.kinds for part in parts])
    subjects = np.concatenate([part.subjects for part in parts])
    times = np.concatenate([part.times for part in parts])
    order = np.lexsort((kinds, times))
    return Events(kinds[order], subjects[order], times[order])


def of_kind(kind: Happening, subjects: SmallInts, times: Floats) -> Events:
    """Return events that are all of one kind."""
    return Events(np.full(len(subjects), kind, np.int8), subjects.astype(np.int32), times)
