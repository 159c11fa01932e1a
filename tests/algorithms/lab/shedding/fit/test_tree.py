"""Networks as trees of nodes, and nodes that form no tree as clusters."""

import numpy as np
import pytest

from algorithms.errors import TooLarge
from algorithms.lab.shedding.fit import tree
from algorithms.lab.shedding.fit.central import FitTables
from algorithms.lab.shedding.fit.tree import ClusterTree
from algorithms.shedding.network import Network, Operator, OperatorKind
from tests.algorithms.shedding import networks


def network_of(*edges: str, inputs: tuple[str, ...] = ("i1",)) -> Network:
    """Return a union per node, named after it in small letters; edges such as `A B`."""
    sources: dict[str, list[str]] = {}
    for edge in edges:
        source, target = edge.split()
        sources.setdefault(target, []).append(source if source in inputs else source.lower())
    operators = tuple(
        Operator(node.lower(), node, 1.0, 1.0, tuple(read), OperatorKind.UNION)
        for node, read in sources.items()
    )
    read = {source for operator in operators for source in operator.sources}
    outputs = {item.name: 1.0 for item in operators if item.name not in read}
    return Network(dict.fromkeys(sources, 1.0), inputs, operators, outputs)


def parents(network: Network) -> dict[str, str | None]:
    clusters = ClusterTree.of(network).clusters
    names = list(clusters)
    for name, cluster in clusters.items():
        assert all(names.index(child) < names.index(name) for child in cluster.outlets)
    return {name: cluster.parent for name, cluster in clusters.items()}


def test_chains_are_a_path() -> None:
    clusters = ClusterTree.of(networks.figure_1()).clusters
    assert {name: item.parent for name, item in clusters.items()} == {"B": "A", "A": None}
    assert clusters["B"].streams == ("a1", "a2")
    assert [stream for stream, _ in clusters["A"].outlets["B"]] == ["a1", "a2"]
    assert clusters["A"].network.inputs == ("i1", "i2")


@pytest.mark.parametrize(
    ("edges", "wanted"),
    [
        (("i1 A", "A B", "A C", "B D"), {"A": None, "B": "A", "C": "A", "D": "B"}),
        (("i1 A", "A B", "A C", "B D", "C D"), {"A": None, "B+C": "A", "D": "B+C"}),
        (("i1 A", "i1 B", "A C", "B C"), {"A+B": None, "C": "A+B"}),
        (("i1 A", "A B", "B C", "A C"), {"A+B": None, "C": "A+B"}),
        (("i1 A", "i1 B"), {"A": None, "B": None}),
    ],
    ids=["tree", "diamond", "two roots", "shortcut", "forest"],
)
def test_nodes_with_several_parents(edges: tuple[str, ...], wanted: dict[str, str | None]) -> None:
    assert parents(network_of(*edges)) == wanted


def test_nodes_that_feed_each_other_are_a_cluster() -> None:
    operators = (
        Operator("a", "A", 1.0, 1.0, ("i1",)),
        Operator("b", "B", 1.0, 1.0, ("a",)),
        Operator("c", "A", 1.0, 1.0, ("b",)),
        Operator("d", "C", 1.0, 1.0, ("c",)),
    )
    network = Network(dict.fromkeys("ABC", 1.0), ("i1",), operators, {"d": 1.0})
    assert parents(network) == {"A+B": None, "C": "A+B"}


def test_inputs_of_descendants_pass_their_ancestors() -> None:
    network = network_of("i1 A", "A B", "B C", "i2 C", inputs=("i1", "i2"))
    clusters = ClusterTree.of(network).clusters
    assert clusters["A"].streams == ("i1", "i2")
    assert clusters["B"].streams == ("i2", "a")
    assert clusters["C"].streams == ("i2", "b")


def test_flows_of_split_edges() -> None:
    """Edges to operators on one child, of a stream that is split there."""
    operators = (
        Operator("a", "A", 1.0, 0.5, ("i1",)),
        Operator("b1", "B", 1.0, 1.0, ("a",)),
        Operator("b2", "B", 1.0, 1.0, ("a",)),
        Operator("useless", "B", 1.0, 0.0, ("b2",)),
        Operator("b3", "B", 1.0, 1.0, ("b2",)),
    )
    weights = {"b1": 1.0, "b3": 1.0, "useless": 1.0}
    network = Network({"A": 1.0, "B": 1.0}, ("i1",), operators, weights)
    split_edges = [edge.name for edge in network.split_edges]
    terms = dict(zip(split_edges, ClusterTree.of(network).flow_terms, strict=True))
    assert terms == {
        "a->b1": ("B", {"a->b1": 1.0}),
        "a->b2": ("B", {"a->b2": 1.0}),
        "b2->useless": None,
        "b2->b3": ("B", {"a->b2": 1.0}),
    }


def test_links_are_nodes() -> None:
    """Each edge on the link counts, so the stream of a passes it twice."""
    operators = (
        Operator("a", "A", 0.1, 1.0, ("i1",)),
        Operator("b1", "B", 0.1, 1.0, ("a",)),
        Operator("b2", "B", 0.1, 1.0, ("a",)),
    )
    weights = {"b1": 1.0, "b2": 2.0}
    network = Network({"A": 1.0, "B": 1.0}, ("i1",), operators, weights, {("A", "B"): 3.0})
    link, leaf = "A->B", "B"
    assert parents(network) == {leaf: link, link: "A", "A": None}
    plan = FitTables.of(network, 0.01).lookup(np.array([2.0]))
    assert plan.outcome.value == pytest.approx(5.0, rel=0.01)
    assert plan.outcome.loads["A->B"] <= 3 + 1e-9
    assert plan.keep["a->b2"] == pytest.approx(1.0, rel=0.02)
    assert plan.keep["a->b1"] == pytest.approx(0.5, rel=0.05)


def test_too_many_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_CLUSTERS", 1)
    with pytest.raises(TooLarge, match="at most 1 exchange"):
        ClusterTree.of(networks.figure_1())
    monkeypatch.setattr(tree, "MAX_NODES_TO_CLUSTER", 1)
    with pytest.raises(TooLarge, match="at most 1 nodes"):
        ClusterTree.of(networks.figure_1())
