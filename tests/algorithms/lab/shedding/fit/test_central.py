"""The guarantee of feasible input tables: against the linear program, on random networks."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from algorithms.errors import BadParameters, BadProblem, TooLarge
from algorithms.lab.shedding.fit.central import CFit, FitTables
from algorithms.lab.shedding.fit.rules import RowRule
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import Network, Operator
from algorithms.shedding.problem import SheddingProblem
from algorithms.vocabulary import Floats
from tests.algorithms.shedding import networks
from tests.algorithms.shedding.certificate import check_plan

EPSILON = 0.2


def test_figure_7() -> None:
    tables = FitTables.of(networks.figure_7(), 0.01)
    whole = tables.lookup(np.array([1 / 8]))
    assert set(whole.keep.values()) == {1.0}
    assert tables.lookup(np.array([0.2])).outcome.value == pytest.approx(0.28, rel=0.01)
    # Above 1/3 the input drops: a third of the node's capacity is one record.
    overload = tables.lookup(np.array([1.0]))
    assert overload.outcome.value == pytest.approx(1 / 3)
    assert overload.keep["i1"] == pytest.approx(1 / 3)
    assert overload.keep["common->lower"] == 0.0


def test_crossed_chains_at_ten_thousand_points() -> None:
    """Against the closed form: the minimum of four cuts."""
    tables = FitTables.of(networks.crossed(64, 32), 0.05)
    rates = np.random.default_rng(7).exponential(12.0, (30_000, 2))
    cuts = [rates.sum(axis=1), 125 / 8 + rates[:, 0] / 2, 125 / 8 + rates[:, 1] / 2]
    optimum = np.minimum(np.min(cuts, axis=0), 125 / 6)
    infeasible = np.flatnonzero(optimum < rates.sum(axis=1) * (1 - 1e-9))[:10_000]
    assert len(infeasible) == 10_000
    index = tables.nodes["n1"].index
    assert index is not None
    scores = tables.nodes["n1"].table.scores
    values = np.array([scores[index.best(rates[point])] for point in infeasible])
    assert (values <= optimum[infeasible] * (1 + 1e-9)).all()
    assert (values >= 0.95 * optimum[infeasible]).all()
    for point in infeasible[:200]:
        plan = tables.lookup(rates[point])
        check_plan(networks.problem(tables.tree.network, *rates[point]), plan)
        assert plan.outcome.value >= 0.95 * optimum[point]


def test_rates_below_all_samples_lose_less_than_epsilon() -> None:
    """The step down to 0: one stream far below its first sample, the other overloads."""
    tables = FitTables.of(networks.crossed(64, 32), 0.05)
    first = tables.nodes["n1"].table.rates[:, 0]
    rates = np.array([first[first > 0].min() * 0.99, 100.0])
    assert tables.lookup(rates).keep["i1"] == 0.0
    exact = FlowProgram(FlowModel.of(tables.tree.network)).solve(rates).value
    assert 0.95 * exact <= tables.lookup(rates).outcome.value < exact


def test_rows_as_in_table_3() -> None:
    """Two inputs at 10 %: the paper has 46 entries."""
    assert 30 <= FitTables.of(networks.crossed(64, 32), 0.1).rows <= 70


@pytest.mark.parametrize("rule", [RowRule.NEEDED, RowRule.ALL])
def test_safe_rules(rule: RowRule) -> None:
    network = networks.crossed(64, 32)
    tables = FitTables.of(network, EPSILON, rule=rule)
    assert_guarantee(network, tables, rate_points(network, 3, 300), EPSILON)


@pytest.mark.parametrize("rule", [RowRule.PARETO, RowRule.TRIANGLE])
def test_unsafe_rules_lose_everything(rule: RowRule) -> None:
    """The crossed chains, a little above the largest rate of one stream: no kept row is below."""
    network = networks.crossed(64, 32)
    rates = np.array([15.6, 1.5])
    optimum = FlowProgram(FlowModel.of(network)).solve(rates).value
    assert optimum > 16
    assert FitTables.of(network, EPSILON, rule=rule).lookup(rates).outcome.value == 0.0
    assert FitTables.of(network, EPSILON).lookup(rates).outcome.value >= (1 - EPSILON) * optimum


def test_results_without_load_are_kept_at_any_rate() -> None:
    operators = (
        Operator("free", "A", 0.0, 1.0, ("i1",)),
        Operator("costly", "A", 1.0, 1.0, ("free",)),
    )
    network = Network({"A": 1.0}, ("i1",), operators, {"free": 1.0, "costly": 1.0})
    plan = FitTables.of(network, EPSILON).lookup(np.array([1e6]))
    assert plan.keep["i1"] == 1.0
    assert plan.outcome.results["free"] == 1e6
    assert plan.outcome.results["costly"] == pytest.approx(1.0)


def test_what_brings_nothing_is_dropped_first() -> None:
    operators = (
        Operator("useful", "A", 1.0, 1.0, ("i1",)),
        Operator("useless", "A", 1.0, 1.0, ("i2",)),
        Operator("empty", "A", 1.0, 0.0, ("i1",)),
    )
    weights = {"useful": 1.0, "useless": 0.0, "empty": 1.0}
    network = Network({"A": 1.0}, ("i1", "i2"), operators, weights)
    plan = FitTables.of(network, EPSILON).lookup(np.array([0.001, 5.0]))
    assert plan.keep == {"i1": 1.0, "i2": 0.0, "i1->useful": 1.0, "i1->empty": 0.0}
    assert plan.outcome.value == 0.001


def test_nothing_brings_results() -> None:
    network = Network({"A": 1.0}, ("i1",), (Operator("o", "A", 1.0, 1.0, ("i1",)),), {"o": 0.0})
    assert FitTables.of(network, EPSILON).lookup(np.array([2.0])).keep == {"i1": 0.0}


def test_separate_networks_do_not_shed_for_each_other() -> None:
    first, second = networks.figure_7(), networks.union()
    renamed = tuple(
        Operator(f"x{item.name}", "B", item.cost, item.selectivity,
                 tuple(f"x{source}" for source in item.sources), item.kind)
        for item in first.operators
    )  # fmt: skip
    network = Network(
        {**second.nodes, "B": 1.0},
        (*second.inputs, "xi1"),
        (*second.operators, *renamed),
        {**second.outputs, "xupper": 1.0, "xlower": 1.0},
    )
    plan = FitTables.of(network, EPSILON).lookup(np.array([1.0, 1.0, 50.0]))
    assert (plan.keep["i1"], plan.keep["i2"]) == (1.0, 1.0)
    assert plan.outcome.loads["B"] <= 1 + 1e-9


def test_bad_input() -> None:
    network = networks.figure_7()
    shape = (network.nodes, network.inputs, network.operators, network.outputs)
    with pytest.raises(BadProblem) as error:
        FitTables.of(Network(*shape, floors={"upper": 0.5}), EPSILON)
    assert error.value.where == "floors"
    for values in ({"epsilon": 0.0}, {"epsilon": 0.9}, {"rule": "none"}):
        with pytest.raises(BadParameters):
            CFit.from_mapping(values)


def test_eight_inputs_are_too_many() -> None:
    with pytest.raises(TooLarge, match=r"8 streams with up to .* samples .* 500,000 rows"):
        FitTables.of(networks.crossed(16, 8, pairs=4), 0.1)


def test_too_many_samples() -> None:
    operators = (
        Operator("cheap", "A", 1e-9, 1.0, ("i1",)),
        Operator("dear", "A", 1e9, 1.0, ("i2",)),
    )
    network = Network({"A": 1.0}, ("i1", "i2"), operators, {"cheap": 1.0, "dear": 1.0})
    with pytest.raises(TooLarge, match=r"samples"):
        FitTables.of(network, 0.001)


def rate_points(network: Network, seed: int, count: int) -> Floats:
    """Return rates around the capacity, some of them 0 or far below or above, float64[n, i]."""
    model = FlowModel.of(network)
    loads = model.loads @ model.unshed(np.eye(model.inputs)) / model.capacities[:, None]
    limits = 1 / np.maximum(loads.max(axis=0), 0.01)
    random = np.random.default_rng(seed)
    shape = (count, model.inputs)
    factors = random.choice([0.0, 0.01, 0.1, 1.0, 10.0], shape, p=[0.1, 0.1, 0.2, 0.5, 0.1])
    return np.asarray(limits * factors * random.exponential(1.0, shape))


def assert_guarantee(network: Network, tables: FitTables, rates: Floats, epsilon: float) -> None:
    program = FlowProgram(FlowModel.of(network))
    for point in rates:
        plan = tables.lookup(point)
        check_plan(SheddingProblem(network, dict(zip(network.inputs, point, strict=True))), plan)
        optimum = program.solve(point).value
        assert plan.outcome.value >= (1 - epsilon) * optimum - 1e-7 * max(1.0, optimum)


def small_tables(network: Network) -> FitTables:
    """Return the tables of a network; reject networks whose tables are too large."""
    try:
        return FitTables.of(network, EPSILON)
    except TooLarge:
        reject()


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(0, 1000))
def test_guarantee_on_trees(data: st.DataObject, seed: int) -> None:
    network = data.draw(networks.networks(tree=True, most_inputs=2))
    tables = small_tables(network)
    assert_guarantee(network, tables, rate_points(network, seed, 20), EPSILON)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(0, 1000))
def test_guarantee_with_bandwidths(data: st.DataObject, seed: int) -> None:
    network = data.draw(networks.networks(tree=True, most_inputs=2, links=True))
    tables = small_tables(network)
    assert_guarantee(network, tables, rate_points(network, seed, 20), EPSILON)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(0, 1000))
def test_guarantee_on_any_nodes(data: st.DataObject, seed: int) -> None:
    network = data.draw(networks.networks(most_inputs=2))
    tables = small_tables(network)
    assert_guarantee(network, tables, rate_points(network, seed, 20), EPSILON)
