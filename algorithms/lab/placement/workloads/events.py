"""Events of a cluster as arrays: arrivals and departures of queries and servers; histories."""

from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from algorithms.placement.problem import PlacementProblem
from algorithms.rows import pick_rows
from algorithms.vocabulary import Floats, Ints, SmallInts


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


@dataclass(frozen=True, eq=False)
class History:
    """A history to replay: `problem` has all queries of the run, `events` have their numbers.

    `problem.servers` are active at the start; a new server may have a higher number, or that of a
    removed one. The measured span begins after `since` and includes `until`.
    """

    problem: PlacementProblem
    events: Events
    since: float
    until: float

    def positions(self, samples: int) -> Ints:
        """Return the number of past events at each of `samples` moments, int64[samples].

        The moments lie evenly in the measured span, the last one at its end.
        """
        moments = np.linspace(self.since, self.until, samples + 1)[1:]
        return np.searchsorted(self.events.times, moments, side="right").astype(np.int64)

    def live_rates(self, positions: Ints) -> Floats:
        """Return the summed rate of the sources read after so many events, float64[samples].

        It is the same for all placements: the denominator of the replication factor.
        """
        readers = np.zeros(len(self.problem.rates), np.int64)
        sums = np.empty(len(positions))
        for sample, (begin, end) in enumerate(pairwise([0, *positions.tolist()])):
            readers += self._readers_of(Happening.ARRIVAL, begin, end)
            readers -= self._readers_of(Happening.DEPARTURE, begin, end)
            sums[sample] = self.problem.rates[readers > 0].sum()
        return sums

    def _readers_of(self, kind: Happening, begin: int, end: int) -> Ints:
        """Count, per source, the queries of the events of one kind from `begin` to `end`."""
        problem, events = self.problem, self.events
        queries = events.subjects[begin:end][events.kinds[begin:end] == kind]
        read = problem.indices[pick_rows(problem.indptr, queries)[1]]
        return np.bincount(read, minlength=len(problem.rates)).astype(np.int64)


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
