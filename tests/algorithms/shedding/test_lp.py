import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import NotProven
from algorithms.lab.shedding.exact.basis import BasisProgram
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.lp import FlowProgram, Lp
from algorithms.shedding.network import Network
from algorithms.shedding.problem import SheddingProblem
from tests.algorithms.shedding.certificate import check_plan
from tests.algorithms.shedding.networks import (
    chain_network,
    crossed,
    figure_1,
    figure_7,
    join,
    networks,
    problem,
    problems,
    rates_of,
    union,
)


def approx(expected: object) -> object:
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("rates", "keep", "value", "loads"),
    [
        ((1, 1), (1 / 5, 2 / 5), 3 / 5, (1, 1)),
        ((1, 0), (1 / 3, 1), 1 / 3, (1 / 3, 1)),
        ((0, 1), (1, 1 / 2), 1 / 2, (1, 1 / 2)),
        ((0.1, 0.1), (1, 1), 0.2, (0.3, 0.4)),
        ((0, 0), (1, 1), 0, (0, 0)),
    ],
)
def test_figure_1(
    rates: tuple[float, ...], keep: tuple[float, ...], value: float, loads: tuple[float, ...]
) -> None:
    plan = Lp().solve(problem(figure_1(), *rates))
    assert plan.keep == approx(dict(zip(("i1", "i2"), keep, strict=True)))
    assert plan.outcome.value == approx(value)
    assert plan.outcome.loads == approx(dict(zip("AB", loads, strict=True)))


@pytest.mark.parametrize(
    ("rate", "at_input", "lower", "value"),
    [
        (1 / 8, 1, 1, 1 / 4),
        (0.2, 1, 2 / 5, 0.28),
        (1 / 3, 1, 0, 1 / 3),
        (1, 1 / 3, 0, 1 / 3),
    ],
)
def test_figure_7(rate: float, at_input: float, lower: float, value: float) -> None:
    plan = Lp().solve(problem(figure_7(), rate))
    assert plan.outcome.value == approx(value)
    assert plan.keep == approx(
        {"i1": at_input, "common->upper": 1, "common->lower": lower},
    )


@pytest.mark.parametrize(
    ("rates", "value", "keep"),
    [((4, 4), 10 / 3, (5 / 6, 0)), ((1, 8), 13 / 6, (1, 7 / 24))],
)
def test_a_union(rates: tuple[float, ...], value: float, keep: tuple[float, ...]) -> None:
    plan = Lp().solve(problem(union(), *rates))
    assert plan.outcome.value == approx(value)
    assert plan.keep == approx(dict(zip(("i1", "i2"), keep, strict=True)))
    assert plan.outcome.loads == approx({"A": 10})


def test_a_join() -> None:
    """Section 3.3: a record of i1 has 10 x 0.1 partners, one of i2 half of 4 x 0.1.

    So i1 costs 1 + 1 + 1 and yields 1; i2 costs 2 + 0.5 + 0.2 and yields 0.2.
    """
    plan = Lp().solve(problem(join(), 2, 4))
    assert plan.outcome.value == approx(2 + 0.2 * 4 / 2.7)
    assert plan.keep == approx({"i1": 1, "i2": 4 / 2.7 / 4})


@given(st.floats(0, 100), st.floats(0, 100))
def test_the_value_of_crossed_chains_is_the_least_of_four_lines(
    first: float, second: float
) -> None:
    value = Lp().solve(problem(crossed(64, 32), first, second)).outcome.value
    lines = (first + second, 125 / 8 + first / 2, 125 / 6, 125 / 8 + second / 2)
    assert value == pytest.approx(min(lines), rel=1e-8, abs=1e-8)


def test_weights_decide_what_is_dropped() -> None:
    network = chain_network([[1.0], [1.0]])
    heavy = Network(network.nodes, network.inputs, network.operators, {"n1_q1": 1, "n1_q2": 3})
    assert Lp().solve(problem(heavy, 1, 1)).keep == approx({"i1": 0, "i2": 1})


def test_a_floor_keeps_a_part_of_an_output() -> None:
    network = figure_1()
    fair = Network(
        network.nodes, network.inputs, network.operators, network.outputs, {}, {"b1": 0.25}
    )
    plan = Lp().solve(problem(fair, 1, 1))
    assert plan.outcome.kept["b1"] >= 0.25 - 1e-9
    assert plan.outcome.value == approx(0.5)


def test_infeasible_floors_are_reported() -> None:
    network = figure_1()
    full = Network(
        network.nodes, network.inputs, network.operators, network.outputs, {}, {"b1": 0.9}
    )
    with pytest.raises(NotProven, match="kInfeasible"):
        Lp().solve(problem(full, 1, 1))


@settings(deadline=None)
@given(problems(links=True))
def test_plans_pass_the_certificate_check(random: SheddingProblem) -> None:
    plan = Lp().solve(random)
    check_plan(random, plan)
    assert set(plan.keep) == set(random.network.locations)


@settings(deadline=None)
@given(problems(links=True))
def test_prices_prove_the_optimum(random: SheddingProblem) -> None:
    """The value of the dual solution equals that of the flows, which respect every bound."""
    model, rates = random.model, random.vector
    solution = BasisProgram(model).solve_basis(rates)
    bound = solution.prices @ model.capacities + solution.input_prices @ rates
    assert solution.value == pytest.approx(bound, rel=1e-7, abs=1e-7)
    assert (model.loads @ solution.flows <= model.capacities * (1 + 1e-7)).all()
    arriving = np.concatenate([rates, model.arrivals @ solution.flows])
    assert (solution.flows <= arriving * (1 + 1e-7) + 1e-9).all()


@settings(deadline=None)
@given(st.data())
def test_a_program_gives_the_same_values_in_any_order(data: st.DataObject) -> None:
    """Warm starts change the time, not the value."""
    network = data.draw(networks())
    model = FlowModel.of(network)
    points = [data.draw(rates_of(network)) for _ in range(4)]
    warm = FlowProgram(model)
    for point in [*points, *reversed(points)]:
        cold = FlowProgram(model).solve(point)
        assert warm.solve(point).value == pytest.approx(cold.value, rel=1e-7, abs=1e-7)


@settings(deadline=None)
@given(st.data())
def test_the_value_is_concave_and_monotone(data: st.DataObject) -> None:
    network = data.draw(networks())
    program = FlowProgram(FlowModel.of(network))
    first, second = data.draw(rates_of(network)), data.draw(rates_of(network))
    part = data.draw(st.floats(0, 1))
    low, high = program.solve(first).value, program.solve(second).value
    middle = program.solve(part * first + (1 - part) * second).value
    slack = 1e-7 * max(1.0, low, high)
    assert middle >= part * low + (1 - part) * high - slack
    assert program.solve(np.maximum(first, second)).value >= max(low, high) - slack
