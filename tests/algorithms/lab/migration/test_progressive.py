"""Small steps: few tasks into a node at once, every prefix within the bound, the same end."""

import numpy as np
import pytest

from algorithms.errors import BadParameters, InfeasibleTau
from algorithms.lab.migration.progressive import progressive
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.result import measure
from algorithms.migration.single_step import SingleStep
from tests.algorithms.migration.brute import drawn


def test_steps_lead_to_the_plan_with_few_tasks_into_a_node_at_once() -> None:
    draw = np.random.default_rng(5)
    checked = 0
    for _ in range(300):
        problem = drawn(draw)
        try:
            plan = SingleStep().solve(problem)
        except InfeasibleTau:
            continue
        most_in = int(draw.integers(1, 4))
        owner = problem.owner.copy()
        for step in progressive(problem, plan, most_in):
            checked += 1
            assert np.bincount([move.target for move in step.moves]).max() <= most_in
            for move in step.moves:
                assert owner[move.task] == move.source
                owner[move.task] = move.target
            loads = np.bincount(owner, problem.work, len(problem.capacities))
            assert step.loads == pytest.approx(loads)
            sent = sum(part.amount for phase in step.schedule.phases for part in phase.transfers)
            assert sent == sum(move.size for move in step.moves)
        assert owner.tolist() == plan.assignment.tolist()
    assert checked > 100


def test_every_prefix_keeps_the_bound_where_an_order_does() -> None:
    """Node 0 has one task to give and one to take: it must give first."""
    problem = MigrationProblem.of_owner([4, 4, 4], [1, 1, 1], [0, 1, 1], 2, 3, 0.0)
    plan = measure(problem, np.array([2, 0, 1], np.int32), (0, 1, 2), 0.0)
    steps = progressive(problem, plan, 1)
    assert all(step.balanced for step in steps)
    assert steps[0].moves[0].task == 0


def test_a_ring_of_full_nodes_passes_its_tasks_on_in_one_step() -> None:
    problem = MigrationProblem.of_owner([4, 4, 4], [1, 1, 1], [0, 1, 2], 3, 3, 0.0)
    turned = measure(problem, np.array([1, 2, 0], np.int32), (0, 1, 2), 0.0)
    steps = progressive(problem, turned, 1)
    assert [(len(step.moves), step.balanced) for step in steps] == [(3, True)]


def test_a_step_that_must_exceed_the_bound_says_so() -> None:
    """A task of 4 for two of 2, one a step: node 0 or node 1 has more than 4 in between."""
    problem = MigrationProblem.of_owner([4, 2, 2], [1, 1, 1], [0, 1, 1], 2, 2, 0.0)
    plan = measure(problem, np.array([1, 0, 0], np.int32), (0, 1), 0.0)
    steps = progressive(problem, plan, 1)
    assert [step.balanced for step in steps] == [False, True]


def test_at_least_one_task_must_move_in() -> None:
    problem = MigrationProblem.of([1, 1], [1, 1], [0], 2, 0.0)
    with pytest.raises(BadParameters):
        progressive(problem, SingleStep().solve(problem), 0)
