"""Laws that hold for every planner of one migration, on problems of any shape."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.errors import InfeasibleTau
from algorithms.lab.migration.future.planners import ForeseenProblem, Mtm
from algorithms.lab.migration.future.projection import BINS, Projection
from algorithms.lab.migration.future.transitions import Transitions
from algorithms.lab.registry import algorithm
from algorithms.migration.free import Free
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.result import MigrationPlan
from algorithms.migration.single_step import SingleStep
from tests.algorithms.migration.certificate import certify

RIVALS = ("single_step", "free", "consistent_hashing", "storm", "storm_matched")
INTERVALS = {"single_step", "storm", "storm_matched"}
# Free assignments need no integer program on these, so that no time limit decides.
SMALL = st.integers(1, 30)


@st.composite
def problems(draw: st.DrawFn) -> MigrationProblem:
    """Draw tasks on intervals of nodes, some of them empty."""
    tasks = draw(SMALL)
    amounts = st.lists(st.integers(0, 9), min_size=tasks, max_size=tasks)
    present = draw(st.integers(1, 8))
    later = draw(st.lists(st.integers(0, tasks), min_size=present - 1, max_size=present - 1))
    nodes = draw(st.integers(1, min(tasks, 8)))
    tau = draw(st.sampled_from([0.2, 0.4, 0.8, 1.2, 3.0]))
    return MigrationProblem.of(draw(amounts), draw(amounts), [0, *sorted(later)], nodes, tau)


def planned(name: str, problem: MigrationProblem) -> MigrationPlan | None:
    """Return a plan, None where none keeps tau."""
    try:
        plan: MigrationPlan = algorithm("migration", name).solve(problem)
    except InfeasibleTau:
        return None
    return plan


@pytest.mark.parametrize("name", RIVALS)
@given(problem=problems())
def test_every_plan_passes_the_certificate(name: str, problem: MigrationProblem) -> None:
    plan = planned(name, problem)
    if plan is not None:
        certify(problem, plan, intervals=name in INTERVALS)


@given(problem=problems(), factor=st.sampled_from([0.5, 2.0, 1024.0]))
def test_only_proportions_of_work_and_state_matter(
    problem: MigrationProblem, factor: float
) -> None:
    scaled = replace(problem, work=problem.work * factor, state=problem.state * factor)
    one, other = planned("single_step", problem), planned("single_step", scaled)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one.cost * factor == other.cost


@given(problem=problems(), other=st.integers(1, 6), seed=st.integers(0, 1000))
def test_a_view_ahead_keeps_tau_whatever_was_learned(
    problem: MigrationProblem, other: int, seed: int
) -> None:
    """Even values without sense make a feasible plan, which costs at least the single step now."""
    counts = np.array(sorted({problem.nodes, min(other, problem.tasks)}))
    transitions = Transitions(counts, np.full((len(counts), len(counts)), 1 / len(counts)))
    mtm = Mtm(method="learned", paths=4, horizon=2)
    key = mtm.landscape(ForeseenProblem(problem, transitions)).key
    values = np.random.default_rng(seed).normal(0.0, 10.0, (len(counts), BINS))
    foreseen = ForeseenProblem(problem, transitions, Projection(key, values, 0.0))
    try:
        plan = mtm.solve(foreseen)
    except InfeasibleTau:
        return
    certify(problem, plan)
    assert plan.feasible
    assert plan.cost >= SingleStep().solve(problem).cost
    assert Free().solve(problem).lower_bound <= plan.cost
