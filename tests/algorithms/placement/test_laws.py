"""What must hold for every registered placement algorithm."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import Infeasible
from algorithms.lab.placement.planner import promised_caps
from algorithms.lab.registry import PLACEMENT, algorithms
from algorithms.placement.online import OnlinePlacement
from algorithms.placement.problem import PlacementProblem
from algorithms.planner import Algorithm
from tests.algorithms.placement.certificate import certify
from tests.algorithms.placement.instances import (
    chain,
    crowded,
    first_sources,
    optimum,
    pairs,
    problems,
)

every = pytest.mark.parametrize("algorithm", algorithms(PLACEMENT), ids=lambda a: a.name)
offline = pytest.mark.parametrize(
    "algorithm", algorithms(PLACEMENT, "offline"), ids=lambda a: a.name
)


def suited(algorithm: Algorithm, problem: PlacementProblem) -> PlacementProblem:
    """Return the problem, with one source per query for the algorithm that is for those."""
    return first_sources(problem) if algorithm.name == "single_source" else problem


def is_solvable(algorithm: Algorithm, problem: PlacementProblem) -> bool:
    return algorithm.kind == "online" or problem.caps.sum() >= problem.queries


@every
@given(drawn=st.booleans().flatmap(lambda unequal: problems(unequal=unequal)))
@settings(deadline=None)
def test_plans_are_certified(algorithm: Algorithm, drawn: PlacementProblem) -> None:
    """On equal servers and on unequal ones."""
    problem = suited(algorithm, drawn)
    if is_solvable(algorithm, problem):
        caps = (
            None if algorithm.kind == "offline" else promised_caps(algorithm.parameters(), problem)
        )
        certify(problem, algorithm.solve(problem), caps)


@every
@pytest.mark.parametrize("shared", [False, True], ids=["distinct", "shared"])
def test_queries_follow_the_capacities(algorithm: Algorithm, shared: bool) -> None:
    """Of 40 queries a node of capacity 10 gets about 4 beside one of 90 (decision 0009).

    Online without the absolute slack alpha, which lets queries of shared sources gather.
    """
    if algorithm.name == "hypergraph":
        pytest.importorskip("mtkahypar")
    queries = [[query, (query + 1) % 40] if shared else [query] for query in range(40)]
    problem = PlacementProblem.from_lists([1.0] * 40, queries, 2, 0.05, [10.0, 90.0])
    parameters = algorithm.parameters()
    if isinstance(parameters, OnlinePlacement):
        parameters = replace(parameters, alpha=0.0)
    plan = algorithm.solve(suited(algorithm, problem), parameters)
    assert plan.loads.tolist() == pytest.approx([4, 36], abs=2)
    if algorithm.kind == "offline":
        assert plan.loads.tolist() in ([3, 37], [4, 36])


@offline
@pytest.mark.parametrize("capacities", [None, [1.0, 2.0, 3.0, 500.0]], ids=["equal", "unequal"])
def test_few_queries_have_a_plan_with_caps_rounded_up(
    algorithm: Algorithm, capacities: list[float] | None
) -> None:
    """Three queries on four servers, without slack: one each, where servers are equal."""
    if algorithm.name == "hypergraph":
        pytest.importorskip("mtkahypar")
    queries = [[0], [1], [0]]
    problem = PlacementProblem.from_lists([1.0, 2.0], queries, 4, 0.0, capacities, round_up=True)
    plan = algorithm.solve(problem)
    certify(problem, plan)
    if capacities is None:
        assert plan.max_load == 1


@every
@given(drawn=st.booleans().flatmap(lambda unequal: problems(6, 3, unequal=unequal)))
@settings(max_examples=40, deadline=None)
def test_no_plan_undercuts_the_optimum_nor_the_optimum_its_bound(
    algorithm: Algorithm, drawn: PlacementProblem
) -> None:
    """Exhaustive on tiny instances; a bound above the optimum would promise the impossible."""
    problem = suited(algorithm, drawn)
    if is_solvable(algorithm, problem):
        plan = algorithm.solve(problem)
        best = optimum(problem, promised_caps(algorithm.parameters(), problem))
        assert plan.traffic >= best >= plan.lower_bound * (1 - 1e-12)


@every
def test_the_input_stays_untouched(algorithm: Algorithm) -> None:
    problem = suited(algorithm, pairs())
    arrays = problem.rates, problem.indptr, problem.indices, problem.types.sizes
    before = [array.tolist() for array in arrays]
    algorithm.solve(problem)
    assert [array.tolist() for array in arrays] == before


@every
def test_everything_pickles(algorithm: Algorithm) -> None:
    """Problem, parameters and plan travel to workers and back."""
    small = suited(algorithm, chain())
    problem, parameters = pickle.loads(pickle.dumps((small, algorithm.parameters())))
    plan = pickle.loads(pickle.dumps(algorithm.solve(problem, parameters)))
    assert np.array_equal(plan.assignment, algorithm.solve(small).assignment)


@every
@given(drawn=problems())
@settings(max_examples=20, deadline=None)
def test_the_same_input_gives_the_same_plan(algorithm: Algorithm, drawn: PlacementProblem) -> None:
    problem = suited(algorithm, drawn)
    if is_solvable(algorithm, problem):
        first, second = algorithm.solve(problem), algorithm.solve(problem)
        assert first.assignment.tolist() == second.assignment.tolist()


@every
def test_no_queries_make_an_empty_plan(algorithm: Algorithm) -> None:
    plan = algorithm.solve(PlacementProblem.from_lists([1.0], [], 3, 0.05))
    assert (len(plan.assignment), plan.traffic, plan.max_load) == (0, 0.0, 0)
    assert plan.replication_factor is None


@offline
def test_an_infeasible_problem_is_refused(algorithm: Algorithm) -> None:
    """The slack that is named is enough."""
    with pytest.raises(Infeasible) as caught:
        algorithm.solve(crowded())
    assert caught.value.smallest == 0.2
    problem = replace(crowded(), nu=caught.value.smallest)
    certify(problem, algorithm.solve(problem))


@every
def test_it_is_documented(algorithm: Algorithm) -> None:
    """Pages and API show these words: the section of the paper, and help for each field."""
    assert "section" in (algorithm.parameters.__doc__ or "")
    assert algorithm.title
    assert algorithm.summary.endswith(".")
    assert all(field.help.endswith(".") for field in algorithm.parameters.fields())


@every
def test_parameters_survive_json(algorithm: Algorithm) -> None:
    parameters = algorithm.parameters()
    assert algorithm.parameters.from_mapping(parameters.to_mapping()) == parameters
