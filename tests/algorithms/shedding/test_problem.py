"""Problems and plans; the certificate check rejects claims that are wrong."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem
from algorithms.shedding.lp import Lp
from algorithms.shedding.network import Network
from algorithms.shedding.problem import SheddingPlan, SheddingProblem, outcome_of, trimmed
from tests.algorithms.shedding.certificate import check_plan
from tests.algorithms.shedding.networks import figure_1, figure_7, join, problem, problems, union

BEST = {"i1": 1 / 5, "i2": 2 / 5}


def plan_of_figure_1(keep: Mapping[str, float] = BEST) -> tuple[SheddingProblem, SheddingPlan]:
    given_problem = problem(figure_1(), 1, 1)
    return given_problem, SheddingPlan.of(given_problem, keep)


def rejected(given_problem: SheddingProblem, plan: SheddingPlan) -> str:
    with pytest.raises(BadProblem) as caught:
        check_plan(given_problem, plan)
    return str(caught.value)


@pytest.mark.parametrize(
    ("keep", "loads", "value"),
    [
        ({"i1": 1 / 3, "i2": 1 / 3}, {"A": 1, "B": 4 / 3}, 2 / 3),
        ({"i1": 1, "i2": 0}, {"A": 1, "B": 3}, 1),
        ({"i1": 0, "i2": 1 / 2}, {"A": 1, "B": 1 / 2}, 1 / 2),
        ({"i1": 1 / 5, "i2": 2 / 5}, {"A": 1, "B": 1}, 3 / 5),
    ],
)
def test_the_loads_are_those_of_table_1(
    keep: dict[str, float], loads: dict[str, float], value: float
) -> None:
    """Plans 1 to 4; results of the overloaded node B count as if it had the time."""
    _, plan = plan_of_figure_1(keep)
    assert plan.outcome.loads == pytest.approx(loads)
    assert plan.outcome.value == pytest.approx(value)
    assert plan.outcome.kept == pytest.approx({"b1": keep["i1"], "b2": keep["i2"]})


def test_an_optimal_plan_passes() -> None:
    check_plan(*plan_of_figure_1())


def test_an_overload_is_rejected() -> None:
    assert rejected(*plan_of_figure_1({"i1": 1 / 3, "i2": 1 / 3})) == (
        "loads.B: is 1.3333333333333333, above the capacity 1.0"
    )


def test_an_overloaded_link_is_rejected() -> None:
    network = figure_1()
    narrow = Network(
        network.nodes, network.inputs, network.operators, network.outputs, {("A", "B"): 0.5}
    )
    given_problem = problem(narrow, 1, 1)
    assert "loads.A->B" in rejected(given_problem, SheddingPlan.of(given_problem, BEST))


@pytest.mark.parametrize(("part", "name"), [(-0.1, "i1"), (1.2, "i2")])
def test_fractions_out_of_range_are_rejected(part: float, name: str) -> None:
    given_problem, plan = plan_of_figure_1()
    claimed = replace(plan, keep={**plan.keep, name: part})
    assert rejected(given_problem, claimed).startswith(f"keep.{name}: must be from 0 to 1")


@pytest.mark.parametrize("value", [0.59, 0.61, 0.0])
def test_another_value_than_claimed_is_rejected(value: float) -> None:
    given_problem, plan = plan_of_figure_1()
    claimed = replace(plan, outcome=replace(plan.outcome, value=value))
    assert rejected(given_problem, claimed).startswith("value: is 0.6")


def test_loads_are_recomputed_not_believed() -> None:
    given_problem, plan = plan_of_figure_1({"i1": 1, "i2": 1})
    low = replace(plan, outcome=replace(plan.outcome, loads={"A": 0.5, "B": 0.5}))
    assert rejected(given_problem, low).startswith("loads.A: is 3")


@settings(deadline=None)
@given(problems(), st.floats(1.001, 3))
def test_optimal_plans_pass_and_no_node_may_have_less_capacity(
    given_problem: SheddingProblem, factor: float
) -> None:
    """The same plan on nodes with less capacity than it uses is rejected."""
    plan = Lp().solve(given_problem)
    check_plan(given_problem, plan)
    network = given_problem.network
    name, load = max(plan.outcome.loads.items(), key=lambda item: item[1])
    if load > 1e-3:
        small = Network(
            {**network.nodes, name: load / factor},
            network.inputs, network.operators, network.outputs,
        )  # fmt: skip
        assert f"loads.{name}" in rejected(SheddingProblem(small, given_problem.rates), plan)


def test_locations_without_a_fraction_keep_everything() -> None:
    given_problem = problem(figure_7(), 1 / 8)
    plan = SheddingPlan.of(given_problem, {})
    assert plan.keep == {"i1": 1, "common->upper": 1, "common->lower": 1}
    assert plan.outcome.value == pytest.approx(1 / 4)


def test_the_outcome_of_a_join() -> None:
    """Per record of i1: 10 x 0.1 results; of i2: 0.5 x 4 x 0.1."""
    outcome = outcome_of(problem(join(), 2, 5), {"i2": 0.5})
    assert outcome.results == pytest.approx({"tail": 2 + 2.5 * 0.2})
    assert outcome.loads == pytest.approx({"A": 2 * 3 + 2.5 * 2.7})
    assert outcome.kept == pytest.approx({"tail": 2.5 / 3})


def test_the_part_kept_of_nothing_is_one() -> None:
    assert outcome_of(problem(union(), 0, 0), {"i1": 0.5}).kept == {"tail": 1}


def test_what_all_branches_drop_is_dropped_at_the_input() -> None:
    keep = {"i1": 0.5, "common->upper": 0.8, "common->lower": 0.4}
    assert trimmed(figure_7(), keep) == pytest.approx(
        {"i1": 0.4, "common->upper": 1, "common->lower": 0.5}
    )


def test_what_nobody_needs_is_dropped_at_the_input() -> None:
    keep = {"i1": 0.5, "common->upper": 0.0, "common->lower": 0.0}
    assert trimmed(figure_7(), keep)["i1"] == 0


@settings(deadline=None)
@given(problems(), st.randoms(use_true_random=False))
def test_dropping_early_gives_the_same_results_for_less_load(
    given_problem: SheddingProblem, random: Any
) -> None:
    network = given_problem.network
    keep = {name: random.choice([0.0, 0.3, 0.5, 1.0]) for name in network.locations}
    late, early = outcome_of(given_problem, keep), outcome_of(given_problem, trimmed(network, keep))
    assert early.results == pytest.approx(late.results, rel=1e-9, abs=1e-9)
    for name, load in early.loads.items():
        assert load <= late.loads[name] * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    ("rates", "why"),
    [
        ({"i1": 1.0}, "inputs.i2: needs a rate"),
        ({"i1": 1.0, "i2": None}, "inputs.i2: is missing: it was not measured yet"),
        ({"i1": 1.0, "i2": -1.0}, "inputs.i2: must be at least 0"),
        ({"i1": 1.0, "i2": float("nan")}, "inputs.i2: must be a finite number"),
        ({"i1": 1.0, "i2": 1.0, "i3": 1.0}, "inputs.i3: is not an input of the network"),
    ],
)
def test_a_problem_needs_the_rate_of_each_input(rates: dict[str, Any], why: str) -> None:
    with pytest.raises(BadProblem, match=why):
        SheddingProblem(figure_1(), rates)
