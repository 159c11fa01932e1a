"""Tables of parents: mapped rows, cross products, mixtures, and what reports contain."""

import numpy as np
import pytest

from algorithms.errors import TooLarge
from algorithms.lab.shedding.fit import chain, mixture, sampling
from algorithms.lab.shedding.fit.central import FitTables
from algorithms.lab.shedding.fit.complementary import DropList
from algorithms.lab.shedding.fit.mixture import MixturePlans
from algorithms.lab.shedding.fit.rules import RowRule
from algorithms.lab.shedding.formats import problem_to_json
from algorithms.lab.shedding.planner import PLANNER
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import Network, Operator, OperatorKind
from tests.algorithms.lab.shedding.fit.test_central import assert_guarantee, rate_points
from tests.algorithms.shedding import networks
from tests.algorithms.shedding.certificate import check_plan

EPSILON = 0.1


def figure_7_behind(cost: float, selectivity: float) -> Network:
    """Return figure 7 on node A, behind a filter on node `front`."""
    network = networks.figure_7()
    common, *branches = network.operators
    return Network(
        {"front": 1.0, **network.nodes},
        network.inputs,
        (
            Operator("filter", "front", cost, selectivity, network.inputs),
            Operator("common", "A", common.cost, 1.0, ("filter",)),
            *branches,
        ),
        network.outputs,
    )


def two_children() -> Network:
    """Return a node with two streams to a child each, and one that ends there."""
    operators = (
        Operator("a1", "A", 0.2, 0.5, ("i1",)),
        Operator("a2", "A", 0.3, 2.0, ("i2",)),
        Operator("a3", "A", 1.0, 1.0, ("i3",)),
        Operator("b", "B", 3.0, 1.0, ("a1",)),
        Operator("c", "C", 0.5, 1.0, ("a2",)),
    )
    return Network(dict.fromkeys("ABC", 1.0), ("i1", "i2", "i3"), operators,
                   {"a3": 1.0, "b": 2.0, "c": 1.0})  # fmt: skip


def test_rows_are_mapped_back_and_checked() -> None:
    # The node in front processes half a record; figure 7 at most 1/3, of 1/2.5 each.
    tables = FitTables.of(figure_7_behind(2.0, 0.4), EPSILON, rule=RowRule.ALL)
    child, parent = tables.nodes["A"].table, tables.nodes["front"].table
    # The settings of the parent have limited the samples of the child to those that can arrive.
    assert child.rates.max() == pytest.approx(0.2)
    assert parent.rates == pytest.approx(child.rates / 0.4)
    assert parent.scores.tolist() == child.scores.tolist()
    assert parent.whole.tolist() == (child.rates[:, 0] <= 1 / 8).tolist()
    plan = tables.lookup(np.array([0.5]))
    assert plan.keep["common->lower"] == pytest.approx(0.4)
    assert plan.outcome.value == pytest.approx(0.28)


@pytest.mark.parametrize("kind", [OperatorKind.UNION, OperatorKind.JOIN])
def test_merges_before_a_child(kind: OperatorKind) -> None:
    windows = (4.0, 10.0) if kind is OperatorKind.JOIN else ()
    operators = (
        Operator("a1", "A", 1.0, 1.0, ("i1",)),
        Operator("a2", "A", 2.0, 0.5, ("i2",)),
        Operator("merge", "A", 1.0, 0.3, ("a1", "a2"), kind, windows),
        Operator("b", "B", 1.0, 1.0, ("merge",)),
        Operator("c", "B", 3.0, 1.0, ("merge",)),
    )
    network = Network({"A": 10.0, "B": 1.0}, ("i1", "i2"), operators, {"b": 1.0, "c": 2.0})
    tables = FitTables.of(network, EPSILON)
    assert isinstance(tables.nodes["A"].plans, MixturePlans)
    assert_guarantee(network, tables, rate_points(network, 1, 100), EPSILON)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_costs_of_very_different_sizes(scale: float) -> None:
    """A cheap parent with a dear child, and the opposite: programs and plans stay exact."""
    operators = (
        Operator("a", "A", scale, 1.0, ("i1",)),
        Operator("local", "A", 3 * scale, 1.0, ("a",)),
        Operator("b", "B", 1.0, 1.0, ("a",)),
        Operator("c", "B", 2.0, 1.0, ("a",)),
    )
    network = Network({"A": 1.0, "B": 1e3}, ("i1",), operators,
                      {"local": 1e-3, "b": 1.0, "c": 1.5})  # fmt: skip
    tables = FitTables.of(network, EPSILON)
    assert isinstance(tables.nodes["A"].plans, MixturePlans)
    for rate in (1e-7, 1.0, 400.0, 1e3, 1e5, 1e7):
        problem = networks.problem(network, rate)
        plan = tables.plan(problem)
        check_plan(problem, plan)
        optimum = FlowProgram(problem.model).solve(problem.vector).value
        assert (1 - EPSILON) * optimum <= plan.outcome.value <= optimum * (1 + 1e-6)


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    network = two_children()
    monkeypatch.setattr(chain, "MAX_PAIRS", 10)
    with pytest.raises(TooLarge, match=r"A: .* rows of children to combine, at most 10"):
        FitTables.of(network, EPSILON)
    monkeypatch.undo()
    monkeypatch.setattr(chain, "MAX_ROWS", 10)
    with pytest.raises(TooLarge, match=r"A: .* rows of children, at most 10"):
        FitTables.of(network, EPSILON)
    monkeypatch.undo()
    monkeypatch.setattr(sampling, "MAX_VISITS", 10)
    with pytest.raises(TooLarge, match="rows; raise epsilon"):
        FitTables.of(network, EPSILON)
    monkeypatch.undo()
    splits = figure_7_behind(0.1, 1.0)
    split_in_front = Network(
        splits.nodes, splits.inputs, (*splits.operators, Operator("x", "front", 1, 1, ("filter",))),
        {**splits.outputs, "x": 0.5},
    )  # fmt: skip
    for name in ("MAX_PROGRAMS", "MAX_PROGRAM_ROWS"):
        monkeypatch.setattr(mixture, name, 1)
        with pytest.raises(TooLarge, match=r"front: .* linear programs with .* rows"):
            FitTables.of(split_in_front, EPSILON)
        monkeypatch.undo()


def test_reports() -> None:
    problem = networks.problem(networks.figure_1(), 1.0, 1.0)
    data = problem_to_json(problem)
    optimum = PLANNER.run(PLANNER.algorithm("lp"), data, {})
    central = PLANNER.run(PLANNER.algorithm("c_fit"), data, {"epsilon": 0.02})
    assert 0.98 * optimum["value"] <= central["value"] <= optimum["value"]
    assert central.keys() - optimum.keys() == {"rows"}
    nodes = PLANNER.run(PLANNER.algorithm("d_fit"), data, {"epsilon": 0.02})
    messages = nodes.pop("messages")
    assert nodes == central
    assert messages["count"] == 3
    assert messages["rows"] == central["rows"]
    assert messages["bytes"] > 25 * messages["rows"]


def test_plan_passes_the_certificate_with_complementary_plans() -> None:
    network = networks.fan_out([0.5 + number % 7 for number in range(40)])
    drops = DropList.of(FitTables.of(network, EPSILON).nodes["A"].local.model,
                        np.ones(40))  # fmt: skip
    rate = 0.5 / drops.loads[int(drops.last[0]), 0]
    problem = networks.problem(network, float(rate))
    plan = FitTables.of(network, EPSILON).plan(problem)
    check_plan(problem, plan)
    optimum = FlowProgram(problem.model).solve(problem.vector).value
    assert (1 - EPSILON) * optimum <= plan.outcome.value <= optimum * (1 + 1e-9)
