"""D-FIT: nodes that exchange messages with their neighbours have the tables of C-FIT."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem, TooLarge
from algorithms.shedding.fit.central import FitTables
from algorithms.shedding.fit.distributed import DistributedTables, Traffic, rows_to_send
from algorithms.shedding.fit.table import Delta, Table
from algorithms.shedding.network import Network, Operator
from tests.algorithms.shedding import networks
from tests.algorithms.shedding.fit.test_central import rate_points

EPSILON = 0.4
TREES = networks.networks(tree=True, most_inputs=2, most_nodes=4)


@st.composite
def changed(draw: st.DrawFn, network: Network) -> Network:
    """Return a network with another cost, selectivity, weight, capacity, or an operator moved."""
    operators = list(network.operators)
    number = draw(st.integers(0, len(operators) - 1))
    operator = operators[number]
    kind = draw(st.sampled_from(["cost", "selectivity", "weight", "capacity", "node"]))
    factor = draw(st.sampled_from([0.5, 0.9, 1.0, 1.01, 2.0]))
    nodes, outputs = dict(network.nodes), dict(network.outputs)
    if kind == "cost":
        operators[number] = replace(operator, cost=operator.cost * factor)
    elif kind == "selectivity":
        operators[number] = replace(operator, selectivity=operator.selectivity * factor)
    elif kind == "weight":
        name = draw(st.sampled_from(sorted(outputs)))
        outputs[name] *= factor
    elif kind == "capacity":
        nodes[draw(st.sampled_from(sorted(nodes)))] *= factor
    else:
        operators[number] = replace(operator, node=draw(st.sampled_from(sorted(nodes))))
    return Network(nodes, network.inputs, tuple(operators), outputs)


def assert_equal(nodes: DistributedTables, network: Network) -> None:
    central = FitTables.of(network, nodes.epsilon)
    assert nodes.states.keys() == central.nodes.keys()
    for name, state in central.nodes.items():
        assert nodes.states[name].table.equals(state.table), name
    for rates in rate_points(network, 1, 5):
        problem = networks.problem(network, *rates.tolist())
        assert nodes.plan(problem) == central.plan(problem)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_equals_c_fit_after_any_changes(data: st.DataObject) -> None:
    network = data.draw(TREES)
    nodes = DistributedTables(network, EPSILON)
    assert_equal(nodes, network)
    for _ in range(data.draw(st.integers(1, 4))):
        network = data.draw(changed(network))
        try:
            nodes.change(network)
        except TooLarge:
            with pytest.raises(TooLarge):
                FitTables.of(network, EPSILON)
            continue
        assert_equal(nodes, network)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_no_change_sends_nothing(data: st.DataObject) -> None:
    network = data.draw(TREES)
    nodes = DistributedTables(network, EPSILON)
    assert nodes.change(network) == Traffic()
    assert nodes.change(Network(dict(network.nodes), network.inputs, network.operators,
                                dict(network.outputs))) == Traffic()  # fmt: skip
