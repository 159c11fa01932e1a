"""MQP, section 4.1.1: servers are filled one after the other with the largest types."""

import heapq
from dataclasses import dataclass

import numpy as np

from algorithms.placement.offline.rounds import spread
from algorithms.placement.offline.single_source import single_source_assignment
from algorithms.placement.offline.solving import solved
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.result import PlacementPlan
from algorithms.vocabulary import Parameters, Progress, SmallInts, silent

_ROUNDS_PER_REPORT = 10_000


@dataclass(frozen=True)
class Mqp(Parameters):
    """Minimum query type packing, section 4.1.1: fewest types per server, largest first.

    Within 2 d_max (log k + 1) of the optimum at equal rates, theorem 2. Queries that all read one
    source go to the algorithm of Figure 1, as in section 6.1.
    """

    def solve(self, problem: PlacementProblem, progress: Progress = silent) -> PlacementPlan:
        """Place all queries. Raises `Infeasible` when they do not fit."""
        return solved(problem, progress, lambda: _assignment(problem, progress))


def _assignment(problem: PlacementProblem, progress: Progress) -> SmallInts:
    """Return the server of each query, int32[n]. Ties: the type that appeared first.

    A server takes types until it has theta queries, equation 2: so many that the servers after
    it can hold the rest. In whole places theta is the rest less their caps (with (1 + nu) n/k
    for each, queries may be left over); where it is 0 or less the server is filled.
    """
    if problem.types.single_source:
        return single_source_assignment(problem)
    types = [(-size, kind) for kind, size in enumerate(problem.types.sizes.tolist())]
    heapq.heapify(types)
    given: list[tuple[int, int, int]] = []
    left, later = problem.queries, int(problem.caps.sum())
    for server, cap in enumerate(problem.caps.tolist()):
        later -= cap
        theta = left - later if left > later else cap
        taken = 0
        while taken < theta and types:
            size, kind = -types[0][0], types[0][1]
            queries = min(size, cap - taken)
            if queries == size:
                heapq.heappop(types)
            else:
                heapq.heapreplace(types, (queries - size, kind))
            given.append((kind, server, queries))
            taken += queries
            if len(given) % _ROUNDS_PER_REPORT == 0:
                progress(1 - (left - taken) / problem.queries)
        left -= taken
    return spread(problem, np.array(given, np.int64).reshape(-1, 3))
