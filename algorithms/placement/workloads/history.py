"""A cluster's history to replay: all queries, with their arrivals and departures."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from algorithms.placement.problem import PlacementProblem
from algorithms.placement.workloads.events import Events, Happening
from algorithms.rows import picked
from algorithms.vocabulary import Floats, Ints


@dataclass(frozen=True, eq=False)
class History:
    """`problem` holds all queries of the run, `events` name them by their number.

    `problem.servers` are there at the start; one that is added may have a higher number, or that
    of one removed before. What is measured is measured after `since`, up to and with `until`.
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
        read = problem.indices[picked(problem.indptr, queries)[1]]
        return np.bincount(read, minlength=len(problem.rates)).astype(np.int64)
