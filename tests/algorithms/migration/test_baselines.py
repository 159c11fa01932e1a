"""What the paper compares with: equal counts, whatever the work and the state."""

import numpy as np
import pytest

from algorithms.migration.baselines import ConsistentHashing, Storm, StormMatched
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.single_step import SingleStep
from tests.algorithms.migration.brute import drawn
from tests.algorithms.migration.certificate import certify

ALL = [ConsistentHashing(), ConsistentHashing(balanced=False), Storm(), StormMatched()]
EQUAL_COUNTS = [ConsistentHashing(), Storm(), StormMatched()]


def even(nodes: int, target: int, tasks: int = 64) -> MigrationProblem:
    starts = np.arange(nodes) * tasks // nodes
    return MigrationProblem.of([1] * tasks, [1] * tasks, starts, target, 0.4)


@pytest.mark.parametrize("planner", ALL, ids=repr)
@pytest.mark.parametrize("unequal", [False, True], ids=["equal", "unequal"])
def test_plans_are_what_they_say(planner: Storm, unequal: bool) -> None:
    draw = np.random.default_rng(4)
    for _ in range(200):
        problem = drawn(draw, unequal=unequal)
        certify(problem, planner.solve(problem), intervals=False)


@pytest.mark.parametrize("planner", EQUAL_COUNTS, ids=repr)
def test_every_node_gets_as_many_tasks(planner: Storm) -> None:
    counts = np.bincount(planner.solve(even(10, 12)).assignment)
    assert counts.min() >= 1
    assert counts.max() <= 6


@pytest.mark.parametrize("planner", [Storm(), StormMatched()], ids=repr)
def test_blocks_are_proportional_to_capacity(planner: Storm) -> None:
    problem = MigrationProblem.of([1] * 12, [1] * 12, [0, 6], 2, 0.0, [1, 2])
    assert np.bincount(planner.solve(problem).assignment).tolist() == [4, 8]


def test_storm_moves_more_than_its_matched_blocks_and_those_more_than_the_optimum() -> None:
    """Nine nodes become eight: in node order nearly every boundary shifts."""
    problem = even(9, 8)
    plans = [planner.solve(problem) for planner in (Storm(), StormMatched(), SingleStep())]
    identity, matched, optimum = (plan.cost for plan in plans)
    assert identity >= matched > optimum


def test_consistent_hashing_moves_about_one_nodes_share() -> None:
    """Its promise: a ninth node takes a ninth of the tasks, the others keep theirs."""
    ring = ConsistentHashing(balanced=False)
    work = [1] * 2_000
    before = ring.solve(MigrationProblem.of(work, work, [0], 8, 1.0))
    problem = MigrationProblem.of_owner(work, work, before.assignment, 8, 9, 1.0)
    plan = ring.solve(problem)
    moved = plan.assignment != before.assignment
    assert set(plan.assignment[moved]) == {8}
    assert 0.05 < moved.mean() < 0.2


def test_the_ring_depends_on_its_seed() -> None:
    first, other = (ConsistentHashing(seed=seed).solve(even(8, 9)) for seed in (0, 1))
    assert first.assignment.tolist() != other.assignment.tolist()
