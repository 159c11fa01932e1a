"""D-FIT: nodes that exchange messages with their neighbours have the tables of C-FIT."""

from dataclasses import replace

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem, TooLarge
from algorithms.lab.shedding.fit.central import FitTables
from algorithms.lab.shedding.fit.distributed import DistributedTables, Traffic
from algorithms.shedding.network import Network, Operator
from tests.algorithms.lab.shedding.fit.test_central import rate_points
from tests.algorithms.shedding import networks

EPSILON = 0.4
TREES = networks.networks(tree=True, most_inputs=2, most_nodes=4, links=True)


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
    return Network(nodes, network.inputs, tuple(operators), outputs, network.links)


def assert_equal(nodes: DistributedTables, network: Network) -> None:
    central = FitTables.of(network, nodes.epsilon)
    assert nodes.states.keys() == central.nodes.keys()
    for name, state in central.nodes.items():
        assert nodes.states[name].table.equals(state.table), name
    for rates in rate_points(network, 1, 5):
        problem = networks.problem(network, *rates.tolist())
        assert nodes.plan(problem) == central.plan(problem)


def small_nodes(network: Network) -> DistributedTables:
    """Return the nodes of a network; reject networks whose tables are too large."""
    try:
        return DistributedTables(network, EPSILON)
    except TooLarge:
        reject()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_equals_c_fit_after_any_changes(data: st.DataObject) -> None:
    network = data.draw(TREES)
    nodes = small_nodes(network)
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
    nodes = small_nodes(network)
    assert nodes.change(network) == Traffic()
    assert nodes.change(replace(network, outputs=dict(network.outputs))) == Traffic()


def crossed(first: float = 64, second: float = 32, selectivity: float = 1.0) -> Network:
    """Return the crossed chains with other costs, and a selectivity, of the first chain."""
    network = networks.crossed(64, 32)
    upper, lower = network.operators[:2]
    return Network(
        network.nodes,
        network.inputs,
        (
            replace(upper, cost=first / 1000),
            replace(lower, cost=second / 1000, selectivity=selectivity),
            *network.operators[2:],
        ),
        network.outputs,
    )


def test_nodes_send_what_a_change_concerns() -> None:
    nodes = DistributedTables(crossed(), 0.05)
    rows = nodes.rows
    # A summary and the table to the parent, settings to the child.
    assert (nodes.traffic.messages, nodes.traffic.rows) == (3, rows)
    # The scores of all rows with the first stream change: its summary, settings and rows.
    before = nodes.states["n1"].table
    sent = nodes.change(crossed(selectivity=0.98))
    after = nodes.states["n1"].table
    common = {*before.keys} & {*after.keys}
    assert sent.rows == before.size + after.size - 2 * len(common)
    assert 0 < len(common) < after.size
    # Load moves from the parent to the child.
    sent = nodes.change(crossed(first=62, second=34, selectivity=0.98))
    assert 2 <= sent.messages <= 3
    # More capacity than any rates of the table use changes settings alone.
    assert nodes.traffic.bytes > sent.bytes > 0


def test_a_local_change_of_a_parent_that_limits_nothing_sends_no_rows() -> None:
    operators = (
        Operator("a", "A", 0.001, 1.0, ("i1",)),
        Operator("b", "B", 1.0, 1.0, ("a",)),
    )
    network = Network({"A": 1.0, "B": 1.0}, ("i1",), operators, {"b": 1.0})
    nodes = DistributedTables(network, EPSILON)
    cheaper = (replace(operators[0], cost=0.0005), operators[1])
    sent = nodes.change(Network(network.nodes, network.inputs, cheaper, network.outputs))
    # The settings with the new limit; the table of B is as before.
    assert (sent.messages, sent.rows) == (1, 0)


def test_after_an_error_the_next_change_builds_all_tables() -> None:
    nodes = DistributedTables(crossed(), EPSILON)
    with pytest.raises(BadProblem):
        nodes.change(replace(crossed(), floors={"n2_q1": 0.5}))
    large = networks.crossed(16, 8, pairs=4)
    with pytest.raises(TooLarge):
        nodes.change(large)
    with pytest.raises(TooLarge):
        nodes.plan(networks.problem(large, *[100.0] * 8))
    nodes.change(crossed(first=60))
    assert_equal(nodes, crossed(first=60))
