"""Compile the hot loops that the Lab alone has: `python -m algorithms.lab.warm_up`."""

from collections.abc import Callable
from typing import Final

import numpy as np

from algorithms.lab.migration.future.planners import ForeseenProblem, Mtm, Sequence, SequenceProblem
from algorithms.lab.migration.future.transitions import Transitions
from algorithms.lab.migration.schedule import schedule_transfers
from algorithms.lab.migration.ssm import ssm
from algorithms.lab.placement.service import PlacementService
from algorithms.lab.placement.simulation import SimulatedCluster
from algorithms.lab.placement.workloads import bipartite
from algorithms.lab.placement.workloads.dynamics import comings_and_goings
from algorithms.lab.registry import PLACEMENT, algorithms
from algorithms.lab.shedding.exact.planner import ExactPlanner
from algorithms.migration.problem import MigrationProblem
from algorithms.placement.online import OnlinePlacement
from algorithms.placement.problem import PlacementProblem
from algorithms.shedding.planner import SHEDDING
from algorithms.warm_up import shedding_problems, warm_up


def _plan_drops() -> None:
    """Plan drops by every algorithm."""
    for problem in shedding_problems():
        for algorithm in algorithms(SHEDDING):
            algorithm.solve(problem, algorithm.parameters())
        (part,) = ExactPlanner(problem.network).parts
        part.all_flows(np.ones((1, 1)))
        part.cuts()


def _migrate() -> None:
    """Plan many migrations, and the order of the transfers of one."""
    problem = MigrationProblem.of([1.0] * 6, [1.0] * 6, [0, 3], 3, 0.5)
    before = problem.work_before, problem.state_before, problem.bounds
    ssm(*before, float(problem.limits[0]), 3)
    schedule_transfers([[0, 1], [1, 0]])
    Sequence().solve(SequenceProblem(problem, (3, 2)))
    foreseen = ForeseenProblem(problem, Transitions.from_history([2, 3, 2, 3]))
    for method in ("exact", "learned"):
        Mtm(method=method, rounds=1, paths=1, horizon=1).solve(foreseen)


def _live() -> None:
    """Draw a workload, place and remove queries, and remove a server."""
    bipartite(4, 2, 1.0, 0)
    problem = PlacementProblem.from_lists((1.0, 2.0, 3.0), [[0, 1], [0], [1, 2]], 2, 0.5)
    events = comings_and_goings(np.arange(3.0), np.ones(3), 9.0)
    for algorithm in algorithms(PLACEMENT, "online"):
        online = algorithm.parameters()
        if isinstance(online, OnlinePlacement):
            SimulatedCluster(online, problem).apply_events(events, 0, len(events))
            service = PlacementService(online, 2, problem.rates)
            for query in range(3):
                service.place(query, problem.sources_of(query))
            service.remove(0)
            service.remove_server(0)


_PARTS: Final[tuple[Callable[[], None], ...]] = (_migrate, _live, _plan_drops)


if __name__ == "__main__":
    warm_up(_PARTS)
