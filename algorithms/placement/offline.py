"""The offline algorithms: all queries are known, section 4."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from algorithms.placement.problem import PlacementProblem
from algorithms.placement.result import PlacementPlan, measured
from algorithms.placement.rounds import greedy_assignment, spread
from algorithms.placement.single_source import single_source_assignment
from algorithms.vocabulary import Parameters, Progress, SmallInts, parameter


@dataclass(frozen=True)
class Mms(Parameters):
    """Min-max traffic per server, section 4.1.2: each round keeps the busiest link low.

    Queries that all read one source go to the algorithm of Figure 1, as in section 6.1.
    """

    def solve(self, problem: PlacementProblem, progress: Progress | None = None) -> PlacementPlan:
        """Place all queries. Raises `Infeasible` when they do not fit."""
        return _solved(problem, progress, lambda: _greedy(problem, progress, by_traffic=True))


@dataclass(frozen=True)
class IncrementalCost(Parameters):
    """Incremental cost, section 4.1.2: each round adds the least traffic it can.

    Queries that all read one source go to the algorithm of Figure 1, as in section 6.1.
    """

    def solve(self, problem: PlacementProblem, progress: Progress | None = None) -> PlacementPlan:
        """Place all queries. Raises `Infeasible` when they do not fit."""
        return _solved(problem, progress, lambda: _greedy(problem, progress, by_traffic=False))


@dataclass(frozen=True)
class OffRand(Parameters):
    """Random baseline, section 6.1: whole types on random servers with room."""

    seed: int = parameter(0, unit="", help="Same seed, same plan.", minimum=0)

    def solve(self, problem: PlacementProblem, progress: Progress | None = None) -> PlacementPlan:
        """Place all queries. Raises `Infeasible` when they do not fit."""
        return _solved(problem, progress, lambda: _random(problem, self.seed))


def _solved(
    problem: PlacementProblem, progress: Progress | None, assign: Callable[[], SmallInts]
) -> PlacementPlan:
    problem.require_feasible()
    started = time.perf_counter()
    assignment = assign() if problem.queries else np.empty(0, np.int32)
    if progress is not None:
        progress(1.0)
    return measured(problem, assignment, problem.capacity, time.perf_counter() - started)


def _greedy(problem: PlacementProblem, progress: Progress | None, *, by_traffic: bool) -> SmallInts:
    if problem.types.single_source:
        return single_source_assignment(problem)
    return greedy_assignment(problem, by_traffic=by_traffic, progress=progress)


def _random(problem: PlacementProblem, seed: int) -> SmallInts:
    draw = np.random.default_rng(seed)
    open_servers = list(range(problem.servers))
    free = [problem.capacity] * problem.servers
    given: list[tuple[int, int, int]] = []
    for kind in draw.permutation(len(problem.types)).tolist():
        waiting = int(problem.types.sizes[kind])
        while waiting:
            at = int(draw.integers(len(open_servers)))
            server = open_servers[at]
            queries = min(waiting, free[server])
            given.append((kind, server, queries))
            waiting -= queries
            free[server] -= queries
            if not free[server]:
                open_servers[at] = open_servers[-1]
                open_servers.pop()
    return spread(problem, np.array(given, np.int64).reshape(-1, 3))
