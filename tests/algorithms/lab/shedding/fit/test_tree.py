"""Networks as trees of nodes, and nodes that form no tree as clusters."""

import pytest

from algorithms.errors import TooLarge
from algorithms.lab.shedding.fit import tree
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


def test_too_many_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_CLUSTERS", 1)
    with pytest.raises(TooLarge, match="at most 1 exchange"):
        ClusterTree.of(networks.figure_1())
    monkeypatch.setattr(tree, "MAX_NODES_TO_CLUSTER", 1)
    with pytest.raises(TooLarge, match="at most 1 nodes"):
        ClusterTree.of(networks.figure_1())
