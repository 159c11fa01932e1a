"""IC and MMS, section 4.1.2."""

from dataclasses import dataclass

from algorithms.placement.offline.rounds import greedy_assignment
from algorithms.placement.offline.single_source import single_source_assignment
from algorithms.placement.offline.solving import solved
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.result import PlacementPlan
from algorithms.vocabulary import Parameters, Progress, SmallInts, silent


@dataclass(frozen=True)
class Mms(Parameters):
    """Min-max traffic per server, section 4.1.2: each round keeps the busiest link low.

    On servers of unequal capacity it is the traffic divided by the capacity that is kept low.
    Queries that all read one source go to the algorithm of Figure 1, as in section 6.1.
    """

    def solve(self, problem: PlacementProblem, progress: Progress = silent) -> PlacementPlan:
        """Place all queries. Raises `Infeasible` when they do not fit."""
        return solved(problem, progress, lambda: _greedy(problem, progress, by_traffic=True))


@dataclass(frozen=True)
class IncrementalCost(Parameters):
    """Incremental cost, section 4.1.2: each round adds the least traffic it can.

    Queries that all read one source go to the algorithm of Figure 1, as in section 6.1.
    """

    def solve(self, problem: PlacementProblem, progress: Progress = silent) -> PlacementPlan:
        """Place all queries. Raises `Infeasible` when they do not fit."""
        return solved(problem, progress, lambda: _greedy(problem, progress, by_traffic=False))


def _greedy(problem: PlacementProblem, progress: Progress, *, by_traffic: bool) -> SmallInts:
    if problem.types.single_source:
        return single_source_assignment(problem)
    return greedy_assignment(problem, by_traffic=by_traffic, progress=progress)
