"""Simulation of a cluster over a history of arrivals and departures of queries and servers."""

import numpy as np

from algorithms.lab.placement.servers import activate, remove_server
from algorithms.lab.placement.workloads.events import Events, Happening
from algorithms.placement.online.pipeline import OnlinePlacement, apply_events, arrays_of
from algorithms.placement.online.state import OnlineState
from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import Ints


class SimulatedCluster:
    """Queries of `problem`, numbered in order of arrival, on the active servers.

    `homes` int32[n]: the server of each query, -1 while it is not alive. `moved`: queries placed
    again because their server went.
    """

    def __init__(self, algorithm: OnlinePlacement, problem: PlacementProblem) -> None:
        self.algorithm = algorithm
        self.problem = problem
        self.state = OnlineState(
            problem.servers,
            problem.rates,
            with_kinds=algorithm.needs_kinds,
            capacities=problem.capacities,
        )
        self.state.know_types(problem)
        self.homes = np.full(problem.queries, -1, np.int32)
        self.moved = 0
        self._rows = arrays_of(problem, with_kinds=algorithm.needs_kinds)
        self._widths = np.diff(problem.indptr)

    @property
    def loads(self) -> Ints:
        """Queries on each active server, int64[k]."""
        loads: Ints = self.state.loads[self.state.board.active]
        return loads

    @property
    def traffic(self) -> float:
        """Delivered rate."""
        return float(self.state.traffic.sum())

    def apply_events(self, events: Events, begin: int, end: int) -> None:
        """Apply the events from `begin` to `end`."""
        kinds = events.kinds[begin:end]
        servers = (kinds == Happening.SERVER_ADDED) | (kinds == Happening.SERVER_REMOVED)
        position = begin
        for stop in (*(begin + np.flatnonzero(servers)).tolist(), end):
            self._apply_queries(events, position, stop)
            if stop < end:
                self._apply_server(int(events.kinds[stop]), int(events.subjects[stop]))
            position = stop + 1

    def _apply_queries(self, events: Events, begin: int, end: int) -> None:
        queries = events.subjects[begin:end].astype(np.int64)
        self._apply(queries, (events.kinds[begin:end] == Happening.ARRIVAL).astype(np.int64))

    def _apply_server(self, kind: int, server: int) -> None:
        if kind == Happening.SERVER_ADDED:
            activate(self.state, server)
            return
        orphans = np.flatnonzero(self.homes == server)
        remove_server(self.state, server)
        self._apply(orphans, np.ones_like(orphans))
        self.moved += len(orphans)

    def _apply(self, queries: Ints, arrives: Ints) -> None:
        """Make room for all arrivals and apply them and the departures."""
        coming = queries[arrives == 1]
        self.state.have_room(int(self._widths[coming].sum()))
        most = self.state.live + len(coming) + 1
        self.state.expect(self.algorithm.nu, self.algorithm.alpha, most)
        rule, seed = self.algorithm.rule, self.algorithm.draws_from
        apply_events(self.state.board, rule, seed, *self._rows, arrives, queries, self.homes)
