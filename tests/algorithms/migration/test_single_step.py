"""Optimal single-step migration: certified, and against everything that could be tried."""

import numpy as np
import pytest

from algorithms.errors import InfeasibleTau, TooLarge
from algorithms.lab.migration.ssm import ssm
from algorithms.migration.feasible import smallest_tau
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.result import measure
from algorithms.migration.single_step import SingleStep, assign_parts
from tests.algorithms.migration.brute import drawn, retained_bytes
from tests.algorithms.migration.certificate import certify
from tests.algorithms.migration.simple_ssm import SimpleSSM


def table_3() -> MigrationProblem:
    """Return section 4's example: twenty tasks, 13 and 7 of them on two nodes, a third to come."""
    return MigrationProblem.of([1] * 20, [1] * 20, [0, 13], 3, 0.4)


def test_the_papers_example_costs_four() -> None:
    plan = SingleStep().solve(table_3())
    assert (plan.cost, plan.gain, plan.max_load) == (4, 16, 9)
    certify(table_3(), plan)


@pytest.mark.parametrize("unequal", [False, True], ids=["equal", "unequal"])
def test_it_is_optimal_on_random_instances(unequal: bool) -> None:
    """5,000 of each: cost, feasibility and refusal agree with trying everything."""
    draw = np.random.default_rng(int(unequal))
    for _ in range(5_000):
        problem = drawn(draw, unequal=unequal)
        best = retained_bytes(problem)
        try:
            plan = SingleStep().solve(problem)
        except InfeasibleTau:
            assert best == -np.inf
        else:
            certify(problem, plan)
            assert plan.feasible
            assert plan.gain == best


def test_the_papers_own_algorithms_agree() -> None:
    """Simple_SSM (figure 2) is the readable reference, SSM (figure 4) the published algorithm."""
    draw = np.random.default_rng(2)
    for _ in range(300):
        problem = drawn(draw, tasks=6)
        limit = float(problem.limits[0])
        bounds = tuple(problem.bounds.tolist())
        reference = SimpleSSM(
            tuple(problem.work), tuple(problem.state), bounds, limit, problem.nodes
        )
        assert reference.retained_bytes() == retained_bytes(problem)
    for _ in range(2_000):
        problem = drawn(draw)
        if (best := retained_bytes(problem)) > -np.inf:
            limit = float(problem.limits[0])
            before = problem.work_before, problem.state_before, problem.bounds
            parts = ssm(*before, limit, problem.nodes)
            plan = measure(problem, *assign_parts(problem, parts), 0.0)
            certify(problem, plan)
            assert plan.feasible
            assert plan.gain == best


@pytest.mark.parametrize("unequal", [False, True], ids=["equal", "unequal"])
def test_the_smallest_tau_is_feasible_and_smallest(unequal: bool) -> None:
    """The error names it: planning with it must work, with any less it must not."""
    draw = np.random.default_rng(3)
    refused = 0
    for _ in range(400):
        problem = drawn(draw, unequal=unequal)
        if retained_bytes(problem) == -np.inf:
            refused += 1
            with pytest.raises(InfeasibleTau) as refusal:
                SingleStep().solve(problem)
            smallest = refusal.value.smallest
            assert smallest == smallest_tau(problem)
            assert SingleStep().solve(with_tau(problem, smallest)).feasible
            assert retained_bytes(with_tau(problem, smallest - 1e-6)) == -np.inf
    assert refused > 20


def with_tau(problem: MigrationProblem, tau: float) -> MigrationProblem:
    capacities = None if problem.equal_nodes else problem.capacities
    given = problem.work, problem.state, problem.owner, problem.present, problem.nodes
    return MigrationProblem.of_owner(*given, tau, capacities)


def test_a_loose_balance_leaves_a_new_node_idle() -> None:
    plan = SingleStep().solve(MigrationProblem.of([1] * 4, [1] * 4, [0], 3, 2.0))
    assert plan.cost == 0
    assert plan.intervals == ((0, 0, 4), (1, 4, 4), (2, 4, 4))


def test_too_many_capacities_are_refused_with_the_numbers() -> None:
    capacities = np.arange(1, 31, dtype=float)
    problem = MigrationProblem.of([1] * 64, [1] * 64, [0], 30, 3.0, capacities)
    with pytest.raises(TooLarge, match="30 different capacities"):
        SingleStep().solve(problem)
