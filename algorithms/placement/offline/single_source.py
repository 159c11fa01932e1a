"""Figure 1: queries that read one source each, section 4.2; within twice the optimum."""

import heapq
from dataclasses import dataclass

import numpy as np

from algorithms.errors import BadProblem
from algorithms.placement.offline.rounds import spread
from algorithms.placement.offline.solving import solved
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.result import PlacementPlan
from algorithms.vocabulary import Parameters, Progress, SmallInts, silent


@dataclass(frozen=True)
class SingleSource(Parameters):
    """The algorithm of Figure 1, section 4.2, for queries that read one source each.

    Within twice the optimum, theorem 3. The other offline algorithms use it for such queries too.
    """

    def solve(self, problem: PlacementProblem, progress: Progress = silent) -> PlacementPlan:
        """Place all queries.

        Raises `BadProblem` where a query reads several sources, `Infeasible` when they do not fit.
        """
        several = np.flatnonzero(np.diff(problem.indptr) > 1)
        if len(several):
            first = int(several[0])
            count = len(problem.sources_of(first))
            why = f"reads {count} sources; this algorithm is for queries of one (try ic or mms)"
            raise BadProblem(f"queries[{first}]", why)
        return solved(problem, progress, lambda: single_source_assignment(problem))


def single_source_assignment(problem: PlacementProblem) -> SmallInts:
    """Return the server of each query, int32[n]; every query must read exactly one source.

    In each round the server with the most free places takes as many queries as it can of the
    source with the largest rate. Ties: the source that appeared first, the lowest server.
    """
    types = problem.types
    waiting = types.sizes.tolist()
    servers = [(-cap, server) for server, cap in enumerate(problem.caps.tolist())]
    heapq.heapify(servers)
    given: list[tuple[int, int, int]] = []
    for kind in np.argsort(-problem.rates[types.indices], kind="stable").tolist():
        while waiting[kind]:
            free, server = servers[0]
            queries = min(waiting[kind], -free)
            waiting[kind] -= queries
            heapq.heapreplace(servers, (free + queries, server))
            given.append((kind, server, queries))
    return spread(problem, np.array(given, np.int64).reshape(-1, 3))
