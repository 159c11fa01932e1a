"""Solver and Solver-W as algorithms: parameters, and the JSON form of problems and plans."""

from typing import Any

import numpy as np
import pytest

from algorithms.errors import BadParameters, BadProblem
from algorithms.lab.registry import planner
from algorithms.lab.shedding.formats import problem_to_json
from algorithms.lab.shedding.plan_table.rate_distributions import ExponentialRates, MeasuredRates
from algorithms.lab.shedding.plan_table.solver import (
    HistoryProblem,
    Solver,
    SolverW,
    history_problem_from_json,
)
from algorithms.shedding.lp import Lp
from tests.algorithms.shedding.certificate import check_plan
from tests.algorithms.shedding.networks import crossed, figure_1, problem

HISTORY = {"i1": [0.1, 0.5, 1.0, 0.2], "i2": [0.3, 4.0, 1.0, 0.0]}


def ran(name: str, data: object, **values: Any) -> dict[str, Any]:
    shedding = planner("shedding")
    return shedding.run(shedding.algorithm(name), data, values)


@pytest.mark.parametrize("solver", [Solver(), SolverW()])
def test_a_plan_is_valid_and_near_the_optimum(solver: Solver | SolverW) -> None:
    given = problem(crossed(64, 32), 20, 20)
    plan = solver.solve(given)
    check_plan(given, plan)
    optimum = Lp().solve(given).outcome.value
    assert (1 - plan.table.error) * optimum <= plan.outcome.value <= optimum * (1 + 1e-9)


def test_the_bounds_are_a_multiple_of_the_rates_or_given() -> None:
    given = problem(figure_1(), 1, 2)
    assert Solver().bounds(given).tolist() == [3, 6]
    assert Solver(overload=2.0).bounds(given).tolist() == [2, 4]
    assert Solver(max_rate=7.0, overload=2.0).bounds(given).tolist() == [7, 7]


def test_without_a_history_rates_are_exponential() -> None:
    given = problem(figure_1(), 1, 2)
    default, own = SolverW().distribution(given), SolverW(mean=5.0).distribution(given)
    assert isinstance(default, ExponentialRates)
    assert isinstance(own, ExponentialRates)
    assert (default.means.tolist(), own.means.tolist()) == ([1, 2], [5, 5])


def test_the_bounds_include_the_history() -> None:
    network = figure_1()
    given = HistoryProblem(network, {"i1": 1, "i2": 1}, np.array([[0.1, 9.0], [0.2, 0.4]]))
    plan = SolverW().solve(given)
    (part,) = plan.table.parts
    assert part.table.space.bounds.tolist() == [3, 9]
    assert plan.table.coverage == 1
    assert isinstance(SolverW().distribution(given), MeasuredRates)
    narrow = SolverW(max_rate=1.0).solve(given)
    assert narrow.table.coverage == 0.5


def test_a_plan_is_reported_with_the_size_of_its_table() -> None:
    data = problem_to_json(problem(figure_1(), 1, 1))
    report = ran("solver", data, epsilon=0.1)
    assert set(report) == {
        "value", "keep", "loads", "kept", "lp_values", "boxes", "plans", "error",
    }  # fmt: skip
    assert report["value"] == pytest.approx(0.6, rel=0.1)
    assert report["keep"] == pytest.approx({"i1": 0.2, "i2": 0.4}, abs=0.06)
    assert report["error"] <= 0.1
    assert 0 < report["plans"] < report["boxes"]
    assert report["lp_values"] < ran("solver", data)["lp_values"]


def test_solver_w_reports_the_expected_error_and_the_coverage() -> None:
    data = problem_to_json(problem(figure_1(), 1, 1))
    report = ran("solver_w", data, epsilon=0.1)
    assert report["expected_error"] <= 0.1 < report["error"]
    assert report["coverage"] == pytest.approx((1 - np.exp(-3)) ** 2)
    fitted = ran("solver_w", data | {"history": HISTORY}, epsilon=0.1)
    assert fitted["coverage"] == 1
    assert fitted["expected_error"] <= 0.1


def test_a_history_does_not_change_the_problem_of_lp() -> None:
    data = problem_to_json(problem(figure_1(), 1, 1)) | {"history": HISTORY}
    given = history_problem_from_json(data)
    assert isinstance(given, HistoryProblem)
    assert Lp().solve(given).outcome.value == pytest.approx(0.6)
    with pytest.raises(BadProblem, match="history: is unknown"):
        ran("lp", data)


@pytest.mark.parametrize(
    ("history", "why"),
    [
        ([1, 2], "history: must be an object"),
        ({"i1": [1]}, "history.i2: is missing"),
        ({"i1": [1], "i2": [1], "i3": [1]}, "history.i3: is not an input"),
        ({"i1": [1], "i2": [1, 2]}, "history.i2: must be 1 rates, not 2"),
        ({"i1": [], "i2": []}, "history.i1: must be some rates"),
        ({"i1": [1], "i2": [-1]}, r"history.i2\[0\]: must be finite and not negative"),
        ({"i1": [1], "i2": ["x"]}, "history.i2: must hold numbers"),
        ({"i1": [1], "i2": None}, "history.i2: must have one dimension"),
    ],
)
def test_a_bad_history_is_rejected(history: object, why: str) -> None:
    data = problem_to_json(problem(figure_1(), 1, 1)) | {"history": history}
    with pytest.raises(BadProblem, match=why):
        ran("solver_w", data)


@pytest.mark.parametrize(
    ("name", "values", "field"),
    [
        ("solver", {"epsilon": 0}, "epsilon"),
        ("solver", {"epsilon": 1.1}, "epsilon"),
        ("solver", {"overload": 0.5}, "overload"),
        ("solver", {"max_rate": -1}, "max_rate"),
        ("solver", {"lp_values": 0}, "lp_values"),
        ("solver", {"mean": 1}, "mean"),
        ("solver_w", {"mean": -1}, "mean"),
    ],
)
def test_bad_parameters_are_rejected(name: str, values: dict[str, Any], field: str) -> None:
    with pytest.raises(BadParameters) as caught:
        ran(name, problem_to_json(problem(figure_1(), 1, 1)), **values)
    assert list(caught.value.fields) == [field]


def test_rates_of_zero_have_a_plan() -> None:
    report = ran("solver", problem_to_json(problem(figure_1(), 0, 0)))
    assert (report["value"], report["lp_values"]) == (0, 0)
    assert report["keep"] == {"i1": 1, "i2": 1}
