"""A cluster that lives through a history: every query has a home, servers come and go."""

import numpy as np

from algorithms.placement.online import OnlinePlacement
from algorithms.placement.state import OnlineState
from algorithms.placement.workloads.events import Events, Happening
from algorithms.placement.workloads.history import History
from algorithms.vocabulary import Ints


class Cluster:
    """Servers by number, kept in the rows of an `OnlineState`; `moved` counts re-placements."""

    def __init__(self, algorithm: OnlinePlacement, history: History) -> None:
        self.algorithm = algorithm
        self.problem = history.problem
        self.state: OnlineState = algorithm.empty_state(self.problem.servers, self.problem.rates)
        self.numbers = list(range(self.problem.servers))
        self.homes = np.full(self.problem.queries, -1, np.int64)
        self.moved = 0

    @property
    def loads(self) -> Ints:
        """Queries on each server there is, int64[k]."""
        return self.state.loads

    @property
    def traffic(self) -> float:
        """Delivered rate."""
        return float(self.state.traffic.sum())

    def live_through(self, events: Events, begin: int, end: int) -> None:
        """Let the events from `begin` to `end` happen."""
        kinds, subjects = events.kinds[begin:end].tolist(), events.subjects[begin:end].tolist()
        for kind, subject in zip(kinds, subjects, strict=True):
            self._happen(kind, subject)

    def _happen(self, kind: int, subject: int) -> None:
        if kind == Happening.ARRIVAL:
            self._place(subject)
        elif kind == Happening.DEPARTURE:
            row = self.numbers.index(int(self.homes[subject]))
            self.state.remove(self.problem.sources_of(subject), row)
            self.homes[subject] = -1
        elif kind == Happening.SERVER_ADDED:
            self._reshape([*self.numbers, subject])
        else:
            self._lose(subject)

    def _place(self, query: int) -> None:
        row = self.algorithm.place(self.state, self.problem.sources_of(query))
        self.homes[query] = self.numbers[row]

    def _lose(self, server: int) -> None:
        orphans = np.flatnonzero(self.homes == server).tolist()
        self.homes[orphans] = -1
        self._reshape([number for number in self.numbers if number != server])
        self.moved += len(orphans)
        for query in orphans:
            self._place(query)

    def _reshape(self, numbers: list[int]) -> None:
        """Go on with these servers, in order of their numbers, which breaks ties."""
        self.numbers = sorted(numbers)
        live = np.flatnonzero(self.homes >= 0).tolist()
        arrivals = self.state.arrivals
        self.state = self.algorithm.empty_state(len(self.numbers), self.problem.rates)
        for query in live:
            sources = self.state.sources(self.problem.sources_of(query))
            self.state.add(sources, self.numbers.index(int(self.homes[query])))
        self.state.arrivals = arrivals
