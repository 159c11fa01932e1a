from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem, TooLarge
from algorithms.lab.shedding.plan_table.network_table import NetworkTable, build_network_table
from algorithms.lab.shedding.plan_table.rate_distributions import ExponentialRates
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import Network, Operator
from tests.algorithms.shedding.certificate import check_plan
from tests.algorithms.shedding.networks import crossed, figure_1, figure_7, networks, problem


def side_by_side(*parts: Network) -> Network:
    """Return a network of independent parts; the names of part p end in `.p`."""
    nodes: dict[str, float] = {}
    inputs: list[str] = []
    operators: list[Operator] = []
    outputs: dict[str, float] = {}
    for number, part in enumerate(parts):
        nodes |= {f"{name}.{number}": limit for name, limit in part.nodes.items()}
        inputs += [f"{name}.{number}" for name in part.inputs]
        outputs |= {f"{name}.{number}": weight for name, weight in part.outputs.items()}
        for item in part.operators:
            sources = tuple(f"{source}.{number}" for source in item.sources)
            node = f"{item.node}.{number}"
            operators.append(
                Operator(
                    f"{item.name}.{number}", node, item.cost, item.selectivity, sources,
                    item.kind, item.windows,
                )
            )  # fmt: skip
    return Network(nodes, tuple(inputs), tuple(operators), outputs)


def table_of(network: Network, bound: float, epsilon: float, **more: Any) -> NetworkTable:
    model = FlowModel.of(network)
    return build_network_table(model, [bound] * model.inputs, epsilon, **more)


def test_independent_parts_have_tables_of_their_own() -> None:
    """Ten crossed pairs have 20 inputs, too many for one table."""
    single = table_of(crossed(64, 32), 60, 0.1)
    table = table_of(side_by_side(*[crossed(64, 32)] * 10), 60, 0.1)
    assert table.lp_values == 10 * single.lp_values
    assert (table.boxes, table.plans) == (10 * single.boxes, 10 * single.plans)
    assert table.error == single.error


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_every_rate_within_bounds_has_a_plan_within_epsilon(data: st.DataObject) -> None:
    parts = [data.draw(networks(most_inputs=2, most_operators=4)) for _ in range(2)]
    network = side_by_side(*parts)
    model = FlowModel.of(network)
    try:
        table = build_network_table(model, [8.0] * model.inputs, 0.2, lp_values=2_000)
    except TooLarge:
        reject()
    program = FlowProgram(model)
    for _ in range(5):
        rates = np.array([data.draw(st.floats(0, 8)) for _ in network.inputs])
        optimum = program.solve(rates).value
        assert table.value_at(rates) >= 0.8 * optimum - 1e-7 * max(1, optimum)
        plan = table.plan_at(dict(zip(network.inputs, rates.tolist(), strict=True)))
        check_plan(problem(network, *rates.tolist()), plan)
        assert plan.outcome.value == pytest.approx(table.value_at(rates), rel=1e-7, abs=1e-7)


def test_plans_belong_to_the_places_of_the_network() -> None:
    network = side_by_side(figure_7(), figure_1())
    plan = table_of(network, 1, 0.02).plan_at({"i1.0": 0.2, "i1.1": 1, "i2.1": 1})
    assert plan.keep["common.0->lower.0"] == pytest.approx(2 / 5, abs=0.03)
    assert (plan.keep["i1.1"], plan.keep["i2.1"]) == pytest.approx((1 / 5, 2 / 5), abs=0.03)
    assert plan.keep["common.0->upper.0"] == 1


def test_inputs_without_operators_are_kept() -> None:
    network = figure_7()
    more = Network(network.nodes, ("i0", "i1"), network.operators, network.outputs)
    table = table_of(more, 1, 0.05)
    assert table.keep_at(np.array([1.0, 1.0]))[0] == 1
    assert table.keep_at(np.array([9.0, 0.1])).tolist() == [1, 1, 1, 1]


def test_the_mean_error_of_parts_is_below_epsilon() -> None:
    network = side_by_side(crossed(64, 32), figure_7())
    rates = ExponentialRates(np.array([10.0, 10.0, 0.2]))
    model = FlowModel.of(network)
    table = build_network_table(model, [60, 60, 1], 0.05, distribution=rates)
    assert table.expected_error is not None
    assert table.expected_error <= 0.05
    assert 0.9 < table.coverage < 1
    program = FlowProgram(model)
    losses = [
        1 - table.value_at(point) / program.solve(point).value
        for point in rates.sample(2_000, np.random.default_rng(2))
        if (point <= [60, 60, 1]).all()
    ]
    assert np.mean(losses) <= table.expected_error


def test_the_limit_of_lp_values_is_that_of_all_parts() -> None:
    one = table_of(crossed(64, 32), 60, 0.1).lp_values
    with pytest.raises(TooLarge, match="allowed LP values"):
        table_of(side_by_side(*[crossed(64, 32)] * 2), 60, 0.1, lp_values=2 * one - 1)
    assert table_of(side_by_side(*[crossed(64, 32)] * 2), 60, 0.1, lp_values=2 * one).plans


def test_progress_is_ascending_over_all_parts() -> None:
    shares: list[float] = []
    table_of(side_by_side(figure_1(), figure_7(), figure_1()), 1, 0.1, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.parametrize(
    ("rates", "why"),
    [
        ({"i1": 1}, "inputs.i2: needs a rate"),
        ({"i1": 1, "i2": -1}, "inputs.i2"),
        ({"i1": 1, "i2": None}, "inputs.i2: is missing: it was not measured yet"),
        ({"i1": 1, "i2": 1, "i3": 1}, "inputs.i3: is not an input"),
    ],
)
def test_bad_rates_are_rejected(rates: dict[str, Any], why: str) -> None:
    with pytest.raises(BadProblem, match=why):
        table_of(figure_1(), 3, 0.1).plan_at(rates)


def test_values_need_a_rate_of_each_input() -> None:
    table = table_of(figure_1(), 3, 0.1)
    with pytest.raises(BadProblem, match="rates: must be 2, one per input, not 1"):
        table.value_at([1.0])
    with pytest.raises(BadProblem, match=r"rates\[1\]"):
        table.value_at([1.0, -1.0])
