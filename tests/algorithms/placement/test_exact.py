"""The proven optimum, against trying everything; refusals with the numbers."""

import pytest
from hypothesis import assume, given, settings

from algorithms.errors import NotProven, TooLarge
from algorithms.lab.placement.workloads import bipartite
from algorithms.placement.exact import Exact
from algorithms.placement.problem import PlacementProblem
from tests.algorithms.placement.certificate import certify
from tests.algorithms.placement.instances import optimum, problems


@given(problems(queries=7, servers=3, unequal=True))
@settings(max_examples=60, deadline=None)
def test_it_is_the_optimum(problem: PlacementProblem) -> None:
    assume(problem.caps.sum() >= problem.queries)
    plan = Exact().solve(problem)
    certify(problem, plan, problem.caps)
    assert plan.traffic == plan.lower_bound
    assert plan.traffic == pytest.approx(optimum(problem, problem.caps))


def test_a_middling_instance_is_proven() -> None:
    """Sixty queries on three servers: far too many to try, quickly proven."""
    problem = bipartite(60, 2, 1.5, 0).problem(3, 0.1)
    plan = Exact(seconds=300).solve(problem)
    certify(problem, plan, problem.caps)


def test_a_hopeless_instance_is_refused_with_its_numbers() -> None:
    with pytest.raises(TooLarge, match="at most 5,000"):
        Exact().solve(bipartite(5_000, 2, 1.5, 0).problem(20, 0.1))


def test_without_a_proof_there_is_no_plan() -> None:
    """The error says how far apart the best plan and the bound are."""
    problem = bipartite(150, 3, 1.2, 0).problem(9, 0.1)
    with pytest.raises(NotProven, match="apart"):
        Exact(seconds=0.5).solve(problem)
