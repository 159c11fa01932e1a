"""The algorithms of section 4 and the random baseline of section 6.1."""

import heapq
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from algorithms.errors import BadProblem
from algorithms.placement.offline.rounds import greedy_assignment, spread
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.result import OfflinePlacement
from algorithms.vocabulary import MAX_SEED, Progress, SmallInts, parameter

_ROUNDS_PER_REPORT = 10_000


@dataclass(frozen=True)
class IncrementalCost(OfflinePlacement):
    """Incremental cost, section 4.1.2: each round adds the least traffic it can.

    Queries that all read one source go to the algorithm of Figure 1, as in section 6.1.
    """

    by_traffic: ClassVar[bool] = False

    def assign(self, problem: PlacementProblem, progress: Progress) -> SmallInts:
        """Return the server of each query, int32[n]."""
        if problem.types.single_source:
            return single_source_assignment(problem)
        return greedy_assignment(problem, by_traffic=self.by_traffic, progress=progress)


@dataclass(frozen=True)
class Mms(IncrementalCost):
    """Min-max traffic per server, section 4.1.2: each round keeps the busiest link low.

    On servers of unequal capacity it is the traffic divided by the capacity that is kept low.
    Queries that all read one source go to the algorithm of Figure 1, as in section 6.1.
    """

    by_traffic: ClassVar[bool] = True


@dataclass(frozen=True)
class Mqp(OfflinePlacement):
    """Minimum query type packing, section 4.1.1: fewest types per server, largest first.

    Within 2 d_max (log k + 1) of the optimum at equal rates, theorem 2. Queries that all read one
    source go to the algorithm of Figure 1, as in section 6.1.
    """

    def assign(self, problem: PlacementProblem, progress: Progress) -> SmallInts:
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


@dataclass(frozen=True)
class SingleSource(OfflinePlacement):
    """The algorithm of Figure 1, section 4.2, for queries that read one source each.

    Within twice the optimum, theorem 3. The other offline algorithms use it for such queries too.
    """

    def assign(self, problem: PlacementProblem, progress: Progress) -> SmallInts:
        """Return the server of each query. Raises `BadProblem` where one reads several sources."""
        del progress
        several = np.flatnonzero(np.diff(problem.indptr) > 1)
        if len(several):
            first = int(several[0])
            count = len(problem.sources_of(first))
            why = f"reads {count} sources; this algorithm is for queries of one (try ic or mms)"
            raise BadProblem(f"queries[{first}]", why)
        return single_source_assignment(problem)


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


@dataclass(frozen=True)
class OffRand(OfflinePlacement):
    """Random baseline, section 6.1: whole types on random servers with free capacity."""

    seed: int = parameter(0, help="Same seed, same plan.", minimum=0, maximum=MAX_SEED)

    def assign(self, problem: PlacementProblem, progress: Progress) -> SmallInts:
        """Return the server of each query, int32[n]."""
        del progress
        draw = np.random.default_rng(self.seed)
        free = problem.caps.tolist()
        open_servers = [server for server in range(problem.servers) if free[server]]
        given: list[tuple[int, int, int]] = []
        for kind in draw.permutation(len(problem.types)).tolist():
            waiting = int(problem.types.sizes[kind])
            while waiting:
                position = int(draw.integers(len(open_servers)))
                server = open_servers[position]
                queries = min(waiting, free[server])
                given.append((kind, server, queries))
                waiting -= queries
                free[server] -= queries
                if not free[server]:
                    open_servers[position] = open_servers[-1]
                    open_servers.pop()
        return spread(problem, np.array(given, np.int64).reshape(-1, 3))
