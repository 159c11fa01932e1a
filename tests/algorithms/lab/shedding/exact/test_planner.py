from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem, NotProven
from algorithms.lab.shedding.exact.planner import ExactPlanner
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import Network, Operator
from algorithms.vocabulary import Floats
from tests.algorithms.shedding.certificate import check_plan
from tests.algorithms.shedding.networks import (
    chain_network,
    crossed,
    figure_1,
    figure_7,
    join,
    networks,
    problem,
    rates_of,
    union,
)


def approx(expected: object) -> object:
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


def optimum(program: FlowProgram, rates: Floats) -> float | None:
    """Return the value of the linear program; None if floors are not feasible."""
    try:
        return program.solve(rates).value
    except NotProven:
        return None


def check_flows(model: FlowModel, rates: Floats, flows: Floats) -> None:
    """Assert that flows are within what arrives, capacities and floors."""
    scale = max(1.0, float(np.max(model.unshed(rates))))
    arriving = np.concatenate([rates, model.arrivals @ flows])
    assert (flows >= 0).all()
    assert (flows <= arriving + 1e-8 * scale).all()
    assert (model.loads @ flows <= model.capacities * (1 + 1e-7) + 1e-9).all()
    least = model.floors * (model.results @ model.unshed(rates))
    assert (model.results @ flows >= least - 1e-7 * scale).all()


@pytest.mark.parametrize(
    ("network", "rates", "value"),
    [
        (figure_1(), (1, 1), 3 / 5),
        (figure_1(), (1, 0), 1 / 3),
        (figure_1(), (0, 1), 1 / 2),
        (figure_7(), (1 / 8,), 1 / 4),
        (figure_7(), (0.2,), 0.28),
        (figure_7(), (1 / 3,), 1 / 3),
        (figure_7(), (1,), 1 / 3),
        (union(), (4, 4), 10 / 3),
        (union(), (1, 8), 13 / 6),
        (join(), (2, 4), 2 + 0.2 * 4 / 2.7),
        (crossed(64, 32), (20, 20), 125 / 6),
        (crossed(64, 32), (5, 30), 145 / 8),
    ],
)
def test_small_cases_without_a_linear_program(
    network: Network, rates: tuple[float, ...], value: float
) -> None:
    given_problem = problem(network, *rates)
    planner = ExactPlanner(network)
    plan = planner.plan(given_problem.rates)
    check_plan(given_problem, plan)
    assert plan.outcome.value == approx(value)
    assert planner.value(given_problem.vector) == approx(value)
    assert planner.is_complete
    assert planner.programs == 0


def test_inputs_without_operators_keep_everything() -> None:
    plain = figure_1()
    network = replace(plain, inputs=("unread", *plain.inputs))
    planner = ExactPlanner(network)
    assert planner.keep(np.array([7.0, 1.0, 1.0])) == approx([1.0, 1 / 5, 2 / 5])
    assert planner.flows(np.array([7.0, 1.0, 1.0])) == approx([7.0, 1 / 5, 2 / 5])


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_values_equal_those_of_the_linear_program(data: st.DataObject) -> None:
    network = data.draw(networks(links=True, floors=True))
    model = FlowModel.of(network)
    program, planner = FlowProgram(model), ExactPlanner(network)
    for _ in range(6):
        rates = data.draw(rates_of(network))
        value = optimum(program, rates)
        if value is None:
            with pytest.raises(NotProven):
                planner.flows(rates)
            continue
        flows = planner.flows(rates)
        check_flows(model, rates, flows)
        assert float(model.values @ flows) == pytest.approx(value, rel=1e-8, abs=1e-8)
        assert planner.value(rates) == pytest.approx(value, rel=1e-8, abs=1e-8)


@settings(deadline=None)
@given(st.data())
def test_cuts_bound_the_value_and_touch_it_if_they_are_all(data: st.DataObject) -> None:
    network = data.draw(networks())
    planner = ExactPlanner(network)
    program = FlowProgram(FlowModel.of(network))
    points = [data.draw(rates_of(network)) for _ in range(4)]
    for rates in points:
        planner.flows(rates)
    place = {name: number for number, name in enumerate(network.inputs)}
    for rates in points:
        bound = sum(
            float(part.cuts().values(rates[None, [place[name] for name in part.network.inputs]])[0])
            if len(part.cuts().constant)
            else np.inf
            for part in planner.parts
        )
        value = program.solve(rates).value
        assert bound >= value - 1e-8 * max(1.0, value)
        if planner.is_complete:
            assert bound == pytest.approx(value, rel=1e-8, abs=1e-8)


def test_cuts_of_the_crossed_chains() -> None:
    (part,) = ExactPlanner(crossed(64, 32)).parts
    cuts = part.cuts()
    lines = np.column_stack([cuts.constant, cuts.slope])
    expected = [[0, 1, 1], [125 / 8, 0.5, 0], [125 / 8, 0, 0.5], [125 / 6, 0, 0]]
    order = np.lexsort(lines.T)
    assert lines[order] == approx(np.array(expected)[np.lexsort(np.array(expected).T)])


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_chains_on_two_nodes_with_costs_in_proportion(data: st.DataObject) -> None:
    """Loads on the border of the cone of the capacities, in closed form."""
    cost = st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0])
    count = data.draw(st.integers(1, 5))
    network = chain_network([[data.draw(cost), data.draw(cost)] for _ in range(count)], [1.0, 2.0])
    points = np.array([data.draw(rates_of(network)) for _ in range(4)])
    program = FlowProgram(FlowModel.of(network))
    best = [program.solve(point).value for point in points]
    assert ExactPlanner(network).values(points) == approx(best)


def test_many_inputs_on_two_nodes_equal_the_linear_program() -> None:
    generator = np.random.default_rng(2)
    network = chain_network(generator.uniform(0.1, 1, (24, 2)).tolist())
    planner, program = ExactPlanner(network), FlowProgram(FlowModel.of(network))
    points = generator.uniform(0, 0.6, (60, 24)) * generator.uniform(0, 1, (60, 1))
    expected = np.array([program.solve(point).value for point in points])
    assert planner.values(points) == pytest.approx(expected, rel=1e-8)
    (part,) = planner.parts
    assert part.all_flows(points) @ part.model.values == pytest.approx(expected, rel=1e-8)
    assert part.programs == 0


def three_nodes(inputs: int, seed: int) -> Network:
    costs = np.random.default_rng(seed).uniform(0.1, 1, (inputs, 3))
    return chain_network(costs.tolist())


def test_known_regions_need_no_further_programs() -> None:
    planner = ExactPlanner(three_nodes(6, 3))
    points = np.random.default_rng(4).uniform(0, 2, (200, 6))
    (part,) = planner.parts
    first = part.all_flows(points)
    programs = part.programs
    assert 0 < programs < len(points) / 2
    assert np.array_equal(part.all_flows(points), first)
    assert part.programs == programs


def test_regions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The regions that were used longest ago are left out; plans stay optimal."""
    monkeypatch.setattr("algorithms.lab.shedding.exact.regions.MAX_REGIONS", 5)
    network = three_nodes(6, 3)
    planner, program = ExactPlanner(network), FlowProgram(FlowModel.of(network))
    (part,) = planner.parts
    points = np.random.default_rng(4).uniform(0, 2, (60, 6))
    for point in points:
        value = float(part.model.values @ planner.flows(point))
        assert value == pytest.approx(program.solve(point).value, rel=1e-8)
        assert part.regions.count <= 5
    assert part.programs > 5
    programs = part.programs
    planner.flows(points[-1])
    assert part.programs == programs


def changed(data: st.DataObject, network: Network) -> Network:
    """Return the network after a change of capacities, costs, selectivities or weights."""
    factors = st.sampled_from([0.5, 0.9, 1.0, 1.1, 2.0])
    operators = tuple(
        replace(
            operator,
            cost=operator.cost * data.draw(factors),
            selectivity=operator.selectivity * data.draw(factors),
        )
        for operator in network.operators
    )
    return replace(
        network,
        nodes={name: capacity * data.draw(factors) for name, capacity in network.nodes.items()},
        operators=operators,
        outputs={name: weight * data.draw(factors) for name, weight in network.outputs.items()},
    )


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_an_updated_planner_equals_a_new_planner(data: st.DataObject) -> None:
    network = data.draw(networks(links=True))
    planner = ExactPlanner(network)
    points = [data.draw(rates_of(network)) for _ in range(4)]
    for _ in range(3):
        for rates in points:
            planner.flows(rates)
        network = changed(data, network)
        planner = planner.updated(network)
        new, model = ExactPlanner(network), FlowModel.of(network)
        for rates in points:
            flows = planner.flows(rates)
            check_flows(model, rates, flows)
            expected = model.values @ new.flows(rates)
            assert model.values @ flows == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_a_small_change_keeps_the_regions() -> None:
    network = three_nodes(6, 3)
    planner = ExactPlanner(network)
    points = np.random.default_rng(4).uniform(0, 2, (200, 6))
    for point in points:
        planner.flows(point)
    capacities = {name: 1.3 * capacity for name, capacity in network.nodes.items()}
    larger = planner.updated(replace(network, nodes=capacities))
    # Capacities change regions and constants of cuts, not prices: every basis stays optimal.
    assert larger.parts[0].regions.count == planner.parts[0].regions.count
    heavier = replace(network, outputs=dict.fromkeys(network.outputs, 2.0))
    assert planner.updated(heavier).parts[0].regions.count == planner.parts[0].regions.count
    for point in points:
        larger.flows(1.3 * point)
    assert larger.programs == 0


def test_parts_that_did_not_change_stay() -> None:
    def two(cost: float) -> Network:
        operators = (
            Operator("a", "A", 1.0, 1.0, ("i1",)),
            Operator("b", "B", cost, 1.0, ("i2",)),
        )
        return Network({"A": 1.0, "B": 1.0}, ("i1", "i2"), operators, {"a": 1.0, "b": 1.0})

    planner = ExactPlanner(two(1.0))
    after = planner.updated(two(2.0))
    assert after.parts[0] is planner.parts[0]
    assert after.parts[1] is not planner.parts[1]
    assert after.flows(np.array([3.0, 3.0])) == approx([1.0, 0.5])


def test_an_update_may_add_and_remove_operators() -> None:
    planner = ExactPlanner(figure_1())
    planner.flows(np.array([1.0, 1.0]))
    after = planner.updated(figure_7())
    assert after.plan({"i1": 0.2}).outcome.value == approx(0.28)


def test_floors_keep_a_part_of_an_output() -> None:
    network = replace(figure_1(), floors={"b1": 0.25})
    planner = ExactPlanner(network)
    plan = planner.plan({"i1": 1.0, "i2": 1.0})
    assert plan.outcome.kept["b1"] == approx(0.25)
    assert plan.outcome.value == approx(0.5)
    # The same region again, and the capacity of its floor changes with the rates.
    again = planner.plan({"i1": 1.1, "i2": 1.1})
    assert again.outcome.kept["b1"] == approx(0.25)
    assert planner.programs == 1


@pytest.mark.parametrize(
    "rates", [[1.0], [1.0, -1.0], [1.0, float("nan")], [1.0, 1e13], [[1.0, 1.0]]]
)
def test_bad_rates(rates: object) -> None:
    with pytest.raises(BadProblem) as raised:
        ExactPlanner(figure_1()).flows(np.array(rates))
    assert raised.value.where == "rates"


def test_a_missing_rate_is_named() -> None:
    with pytest.raises(BadProblem) as raised:
        ExactPlanner(figure_1()).plan({"i1": 1.0})
    assert raised.value.where == "inputs.i2"
