"""OffRand, section 6.1."""

from dataclasses import dataclass

import numpy as np

from algorithms.placement.offline.rounds import spread
from algorithms.placement.offline.solving import solved
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.result import PlacementPlan
from algorithms.vocabulary import Parameters, Progress, SmallInts, parameter, silent


@dataclass(frozen=True)
class OffRand(Parameters):
    """Random baseline, section 6.1: whole types on random servers with room."""

    seed: int = parameter(0, help="Same seed, same plan.", minimum=0)

    def solve(self, problem: PlacementProblem, progress: Progress = silent) -> PlacementPlan:
        """Place all queries. Raises `Infeasible` when they do not fit."""
        return solved(problem, progress, lambda: _random(problem, self.seed))


def _random(problem: PlacementProblem, seed: int) -> SmallInts:
    draw = np.random.default_rng(seed)
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
