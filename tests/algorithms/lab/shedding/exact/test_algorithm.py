"""The algorithm `exact`: its parameters, and the JSON form of its plans."""

from typing import Any

import pytest
from hypothesis import given, settings

from algorithms.errors import BadParameters
from algorithms.lab.registry import planner
from algorithms.lab.shedding.exact.algorithm import Exact, ExactPlan
from algorithms.lab.shedding.formats import problem_to_json
from algorithms.shedding.lp import Lp
from algorithms.shedding.problem import SheddingProblem
from tests.algorithms.shedding.certificate import check_plan
from tests.algorithms.shedding.networks import chain_network, figure_1, figure_7, problem, problems


def ran(data: object, **values: Any) -> dict[str, Any]:
    shedding = planner("shedding")
    return shedding.run(shedding.algorithm("exact"), data, values)


def test_a_plan_counts_cuts_regions_and_programs() -> None:
    plan = ran(problem_to_json(problem(figure_1(), 1, 1)))
    assert plan["value"] == pytest.approx(0.6)
    assert plan["keep"] == pytest.approx({"i1": 0.2, "i2": 0.4})
    assert (plan["cuts"], plan["regions"], plan["lp_values"]) == (4, 1, 0)


def test_one_resource_has_thresholds_instead_of_regions() -> None:
    plan = Exact().solve(problem(figure_7(), 0.2))
    assert isinstance(plan, ExactPlan)
    assert (plan.cuts, plan.regions, plan.programs) == (3, 0, 0)


def test_fair_plans() -> None:
    data = problem_to_json(problem(chain_network([[1.0], [3.0]]), 1, 1))
    assert ran(data)["kept"] == pytest.approx({"n1_q1": 1, "n1_q2": 0})
    fair = ran(data, fairness="max_min")
    assert fair["kept"] == pytest.approx({"n1_q1": 1 / 4, "n1_q2": 1 / 4})
    assert "cuts" not in fair


def test_an_unknown_fairness_is_an_error() -> None:
    with pytest.raises(BadParameters) as raised:
        Exact(fairness="equal")
    assert raised.value.fields == {"fairness": ["must be one of none, max_min, not 'equal'"]}


def test_progress_ends_with_1() -> None:
    for fairness in ("none", "max_min"):
        seen: list[float] = []
        Exact(fairness=fairness).solve(problem(figure_1(), 1, 1), seen.append)
        assert seen == sorted(seen)
        assert seen[-1] == 1.0


@settings(deadline=None)
@given(problems(links=True))
def test_it_equals_the_linear_program(random: SheddingProblem) -> None:
    plan = Exact().solve(random)
    check_plan(random, plan)
    expected = Lp().solve(random).outcome.value
    assert plan.outcome.value == pytest.approx(expected, rel=1e-7, abs=1e-7)
