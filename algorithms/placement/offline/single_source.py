"""Figure 1: queries that read one source each, section 4.2; within twice the optimum."""

import heapq

import numpy as np

from algorithms.placement.offline.rounds import spread
from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import SmallInts


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
