"""Networks are validated: errors name the operator and the value."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from algorithms.errors import BadProblem
from algorithms.lab.shedding.fragments import fragments
from algorithms.shedding import network as network_module
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import Edge, Network, Operator, OperatorKind
from tests.algorithms.shedding.networks import (
    chain_network,
    crossed,
    figure_1,
    figure_7,
    join,
    networks,
    union,
)

JOIN, UNION = OperatorKind.JOIN, OperatorKind.UNION


def network(*operators: Operator, **more: Any) -> Network:
    """Return a network of one node and input i1, whose result is the last operator's."""
    fields: dict[str, Any] = {
        "nodes": {"A": 1.0},
        "inputs": ("i1",),
        "outputs": {operators[-1].name: 1.0} if operators else {},
    }
    return Network(operators=operators, **(fields | more))


def chain(name: str = "a", **more: Any) -> Operator:
    fields: dict[str, Any] = {
        "node": "A",
        "cost": 1.0,
        "selectivity": 1.0,
        "sources": ("i1",),
    } | more
    return Operator(name, **fields)


def rejected(*operators: Operator, **more: Any) -> str:
    with pytest.raises(BadProblem) as caught:
        network(*operators, **more)
    return str(caught.value)


def test_a_cycle_is_named() -> None:
    text = rejected(
        chain("a", kind=UNION, sources=("i1", "c")),
        chain("b", sources=("a",)),
        chain("c", sources=("b",)),
    )
    where, _, why = text.partition(": is in a cycle: ")
    assert where.removeprefix("operators.") in "abc"
    around = why.split(" -> ")
    assert around[0] == around[-1]
    assert set(around) == {"a", "b", "c"}
    # Each reads the one before it.
    assert all(pair in {("a", "b"), ("b", "c"), ("c", "a")} for pair in pairwise(around))


def test_an_operator_that_reads_itself_is_a_cycle() -> None:
    assert "a -> a" in rejected(chain("a", sources=("a",)))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"cost": -1.0}, "operators.a.cost: must be at least 0 and at most 1e+12, not -1"),
        ({"cost": None}, "operators.a.cost: is missing: it was not measured yet"),
        ({"cost": math.nan}, "operators.a.cost: must be a finite number, not nan"),
        ({"cost": "1"}, "operators.a.cost: must be a finite number, not '1'"),
        ({"cost": True}, "operators.a.cost: must be a finite number, not True"),
        ({"cost": 1e13}, "operators.a.cost: must be at least 0 and at most 1e+12, not 1e+13"),
        ({"cost": 10**400}, "operators.a.cost: must be a finite number"),
        ({"selectivity": -0.5}, "operators.a.selectivity: must be at least 0"),
        ({"selectivity": None}, "operators.a.selectivity: is missing: it was not measured yet"),
        ({"selectivity": math.inf}, "operators.a.selectivity: must be a finite number"),
        ({"node": "B"}, "operators.a.node: is unknown: 'B'"),
        ({"sources": ("i2",)}, "operators.a.from: names no input or operator: 'i2'"),
        ({"sources": ()}, "operators.a.from: must name one source"),
        ({"sources": ("i1", "i1")}, "operators.a.from: must name each source once"),
        ({"sources": (), "kind": UNION}, "operators.a.from: must name at least one source"),
        ({"kind": JOIN, "windows": (1.0, 1.0)}, "operators.a.from: must name two sources"),
        ({"windows": (1.0, 1.0)}, "operators.a.windows: are for joins only"),
    ],
)
def test_a_bad_operator_is_named(change: dict[str, Any], why: str) -> None:
    assert rejected(chain(**change)).startswith(why)


@pytest.mark.parametrize(
    ("windows", "why"),
    [
        ((), "must have two numbers, one for each source"),
        ((1.0,), "must have two numbers, one for each source"),
        ((1.0, -1.0), "must be at least 0"),
        ((1.0, None), "is missing"),
    ],
)
def test_a_join_needs_two_windows(windows: tuple[Any, ...], why: str) -> None:
    both = chain("j", kind=JOIN, sources=("i1", "i2"), windows=windows)
    text = rejected(both, inputs=("i1", "i2"))
    assert text.startswith("operators.j.windows: ")
    assert why in text


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"nodes": {"A": 0}}, "nodes.A: must be above 0 and at most 1e+12, not 0"),
        ({"nodes": {"A": -1.0}}, "nodes.A: must be above 0"),
        ({"nodes": {"A": None}}, "nodes.A: is missing"),
        ({"nodes": {}}, "nodes: must not be empty"),
        ({"inputs": ()}, "inputs: must not be empty"),
        ({"inputs": ("i1", "i1")}, "inputs.i1: is the name of two inputs or operators"),
        ({"inputs": ("i1", "a")}, "operators.a: is the name of two inputs or operators"),
        ({"inputs": ("i1", "x->y")}, "inputs: needs names of text without ->, not 'x->y'"),
        ({"inputs": ("i1", "")}, "inputs: needs names of text"),
        ({"inputs": ("i1", 3)}, "inputs: needs names of text"),
        ({"outputs": {"b": 1.0}}, "outputs.b: is not an operator"),
        ({"outputs": {"i1": 1.0}}, "outputs.i1: is not an operator"),
        ({"outputs": {"a": -1.0}}, "outputs.a: must be at least 0"),
        ({"outputs": {"a": None}}, "outputs.a: is missing"),
        ({"floors": {"a": 1.5}}, "floors.a: must be a part, at most 1, of an output"),
        ({"floors": {"a": -0.5}}, "floors.a: must be at least 0"),
        ({"floors": {"b": 0.5}}, "floors.b: is not an operator"),
        ({"outputs": {}, "floors": {"a": 0.5}}, "floors.a: must be a part"),
        ({"links": {("A", "B"): 1.0}}, "links.A->B: must name two nodes"),
        ({"links": {("A", "A"): 0.0}}, "links.A->A: must be above 0"),
    ],
)
def test_a_bad_network_is_rejected(change: dict[str, Any], why: str) -> None:
    assert rejected(chain(), **change).startswith(why)


def test_a_network_needs_operators() -> None:
    assert rejected() == "operators: must not be empty"


@pytest.mark.parametrize(
    ("limit", "what"),
    [("MAX_OPERATORS", "operators"), ("MAX_INPUTS", "inputs"), ("MAX_NODES", "nodes")],
)
def test_sizes_have_limits(monkeypatch: pytest.MonkeyPatch, limit: str, what: str) -> None:
    two = {"nodes": {"A": 1.0, "B": 1.0}, "inputs": ("i1", "i2")}
    monkeypatch.setattr(network_module, limit, 1)
    assert rejected(chain("a"), chain("b"), **two) == f"{what}: must be at most 1, not 2"


def test_operators_are_ordered_after_their_sources() -> None:
    operators = (chain("c", sources=("b",)), chain("b", sources=("a",)), chain("a"))
    assert [item.name for item in network(*operators).order] == ["a", "b", "c"]


def test_drop_locations_are_inputs_and_edges_of_splits() -> None:
    """Section 3.2: an output that others read, too, is a split."""
    assert figure_1().locations == ("i1", "i2")
    assert figure_7().locations == ("i1", "common->upper", "common->lower")
    assert union().locations == ("i1", "i2")
    read = network(chain("a"), chain("b", sources=("a",)), outputs={"a": 1.0, "b": 1.0})
    assert read.locations == ("i1", "a->b")
    shared = network(chain("a"), chain("b"))
    assert shared.locations == ("i1", "i1->a", "i1->b")


def test_gains_of_a_join_are_those_of_section_3_3() -> None:
    """A record of the first source has partners in the window of the second."""
    assert list(join().by_name["j"].gains) == pytest.approx([1.0, 0.4])
    assert union().by_name["u"].gains == (1.0, 1.0)
    assert Edge("a", "b").name == "a->b"


def test_resources_are_nodes_then_links() -> None:
    linked = Network(
        {"A": 1.0, "B": 1.0}, ("i1",), figure_1().operators[::2], {"b1": 1.0}, {("A", "B"): 5.0}
    )
    assert linked.resources == ("A", "B", "A->B")


def test_fragments_share_nothing() -> None:
    """Chains on own nodes are apart; a shared node or a link of one joins them."""
    apart = Network(
        {"A": 1.0, "B": 1.0, "idle": 1.0},
        ("i1", "i2", "unread"),
        (chain("a"), chain("b", node="B", sources=("i2",))),
        {"a": 1.0, "b": 1.0},
    )
    parts = fragments(apart)
    assert [(part.inputs, tuple(part.nodes), tuple(part.by_name)) for part in parts] == [
        (("i1",), ("A",), ("a",)),
        (("i2",), ("B",), ("b",)),
    ]
    assert len(fragments(crossed(64, 32))) == 1
    assert len(fragments(chain_network([[1.0, 1.0], [1.0, 1.0]]))) == 1


@settings(deadline=None)
@given(networks(links=True))
def test_the_value_of_a_network_is_the_sum_of_its_fragments(given_network: Network) -> None:
    """Links of two fragments' nodes carry nothing."""
    rates = dict.fromkeys(given_network.inputs, 3.0)
    whole = FlowProgram(FlowModel.of(given_network)).solve(np.array(list(rates.values())))
    parts = [
        FlowProgram(FlowModel.of(part)).solve(np.full(len(part.inputs), 3.0)).value
        for part in fragments(given_network)
    ]
    assert sum(parts) == pytest.approx(whole.value, rel=1e-7, abs=1e-7)
