"""Free assignment: no task has to be beside its neighbours, and nothing keeps more."""

import itertools

import numpy as np
import pytest

from algorithms.errors import InfeasibleTau
from algorithms.migration.free import Free
from algorithms.migration.limits import is_within
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.single_step import SingleStep
from tests.algorithms.migration.brute import drawn
from tests.algorithms.migration.certificate import certify


def retained_bytes(problem: MigrationProblem) -> float:
    """Try every node for every task."""
    best = -np.inf
    for targets in itertools.combinations(np.flatnonzero(problem.capacities > 0), problem.nodes):
        for choice in itertools.product(targets, repeat=problem.tasks):
            assignment = np.array(choice)
            loads = np.bincount(assignment, problem.work, len(problem.capacities))
            if all(map(is_within, loads, problem.limits)):
                kept = assignment == problem.owner
                best = max(best, float(problem.state[kept].sum()))
    return best


@pytest.mark.parametrize("unequal", [False, True], ids=["equal", "unequal"])
def test_it_is_optimal_on_tiny_instances(unequal: bool) -> None:
    draw = np.random.default_rng(7)
    solved = 0
    while solved < 40:
        problem = drawn(draw, unequal=unequal, tasks=5)
        if len(problem.capacities) > 4:
            continue
        best = retained_bytes(problem)
        if best == -np.inf:
            with pytest.raises(InfeasibleTau):
                Free().solve(problem)
            continue
        plan = Free().solve(problem)
        certify(problem, plan, intervals=False)
        assert plan.feasible
        assert plan.gain == pytest.approx(best)
        assert plan.lower_bound == pytest.approx(plan.cost)
        solved += 1


def test_it_never_moves_more_than_intervals_do() -> None:
    """Every interval plan is a free one; its price is a table with more entries."""
    draw = np.random.default_rng(8)
    for _ in range(30):
        state, work = draw.integers(1, 100, 64), draw.integers(1, 10, 64)
        problem = MigrationProblem.of(work, state, np.arange(10) * 6, 8, 0.4)
        free, intervals = Free().solve(problem), SingleStep().solve(problem)
        certify(problem, free, intervals=False)
        assert free.feasible
        assert free.lower_bound <= free.cost <= intervals.cost
        assert len(free.intervals) >= len(intervals.intervals)
