"""Query networks for tests of load shedding: those of the paper, and random ones."""

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import strategies as st

from algorithms.shedding.network import Network, Operator, OperatorKind
from algorithms.shedding.problem import SheddingProblem
from algorithms.vocabulary import Floats

_COSTS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0])
_SELECTIVITIES = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0, 1.0, 1.0, 2.0])
_WINDOWS = st.sampled_from([0.5, 1.0, 2.0, 4.0])
_CAPACITIES = st.sampled_from([0.5, 1.0, 2.0, 4.0, 10.0])
_WEIGHTS = st.sampled_from([0.0, 0.5, 1.0, 1.0, 1.0, 3.0])
_RATES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0]) | st.floats(0.0, 20.0)


def chain_network(
    costs: Sequence[Sequence[float]], capacities: Sequence[float] | None = None
) -> Network:
    """Return chains of selectivity 1 with weight 1: chain q costs `costs[q][n]` on node n."""
    nodes = [f"n{node + 1}" for node in range(len(costs[0]))]
    inputs = [f"i{query + 1}" for query in range(len(costs))]
    operators = []
    for query, row in enumerate(costs):
        source = inputs[query]
        for node, cost in zip(nodes, row, strict=True):
            operators.append(Operator(f"{node}_q{query + 1}", node, cost, 1.0, (source,)))
            source = operators[-1].name
    outputs = {f"{nodes[-1]}_q{query + 1}": 1.0 for query in range(len(costs))}
    limits = [1.0] * len(nodes) if capacities is None else capacities
    return Network(dict(zip(nodes, limits, strict=True)), tuple(inputs), tuple(operators), outputs)


def figure_1() -> Network:
    """Return the network of figure 1: inputs i1, i2; operators a1, a2 on A, b1, b2 on B."""
    operators = (
        Operator("a1", "A", 1.0, 1.0, ("i1",)),
        Operator("a2", "A", 2.0, 1.0, ("i2",)),
        Operator("b1", "B", 3.0, 1.0, ("a1",)),
        Operator("b2", "B", 1.0, 1.0, ("a2",)),
    )
    return Network({"A": 1.0, "B": 1.0}, ("i1", "i2"), operators, {"b1": 1.0, "b2": 1.0})


def figure_7() -> Network:
    """Return the network of figure 7: a common operator, branches `upper` (2), `lower` (5)."""
    return fan_out([2.0, 5.0], names=("upper", "lower"))


def fan_out(costs: Sequence[float], names: Sequence[str] | None = None) -> Network:
    """Return a common operator of cost 1 on a node of capacity 1, with a branch per cost."""
    branches = [f"b{number + 1}" for number in range(len(costs))] if names is None else names
    operators = [Operator("common", "A", 1.0, 1.0, ("i1",))]
    for name, cost in zip(branches, costs, strict=True):
        operators.append(Operator(name, "A", cost, 1.0, ("common",)))
    return Network({"A": 1.0}, ("i1",), tuple(operators), dict.fromkeys(branches, 1.0))


def union() -> Network:
    """Return two chains that a union merges, on a node of capacity 10."""
    operators = (
        Operator("a1", "A", 1.0, 1.0, ("i1",)),
        Operator("a2", "A", 2.0, 0.5, ("i2",)),
        Operator("u", "A", 1.0, 1.0, ("a1", "a2"), OperatorKind.UNION),
        Operator("tail", "A", 1.0, 1.0, ("u",)),
    )
    return Network({"A": 10.0}, ("i1", "i2"), operators, {"tail": 1.0})


def join() -> Network:
    """Return two chains that a join merges, windows 4 and 10 records, on a node of capacity 10."""
    operators = (
        Operator("a1", "A", 1.0, 1.0, ("i1",)),
        Operator("a2", "A", 2.0, 0.5, ("i2",)),
        Operator("j", "A", 1.0, 0.1, ("a1", "a2"), OperatorKind.JOIN, (4.0, 10.0)),
        Operator("tail", "A", 1.0, 1.0, ("j",)),
    )
    return Network({"A": 10.0}, ("i1", "i2"), operators, {"tail": 1.0})


def crossed(first: float, second: float, pairs: int = 1) -> Network:
    """Return the chains of figure 9: costs first, second on the nodes, and second, first, in ms.

    With more pairs there are more chains, of the same costs.
    """
    costs = [[first / 1000, second / 1000], [second / 1000, first / 1000]]
    return chain_network(costs * pairs)


def problem(network: Network, *rates: float) -> SheddingProblem:
    """Return a network at rates, in the order of its inputs."""
    return SheddingProblem(network, dict(zip(network.inputs, rates, strict=True)))


@st.composite
def networks(
    draw: st.DrawFn,
    *,
    most_inputs: int = 3,
    most_operators: int = 8,
    most_nodes: int = 3,
    merges: bool = True,
    splits: bool = True,
    tree: bool = False,
    links: bool = False,
    floors: bool = False,
) -> Network:
    """Return a random network: chains, and if allowed splits, unions and joins.

    With `tree`, an operator is on the node of its sources or on a child of that node, inputs
    arrive on the first node, and nodes form a tree; else on any node. `links`: some pairs of nodes
    have a bandwidth; `floors`: some outputs have a floor, which may be infeasible at high rates.
    """
    node_names = [f"n{number}" for number in range(draw(st.integers(1, most_nodes)))]
    nodes = {name: draw(_CAPACITIES) for name in node_names}
    parents = [draw(st.integers(0, max(0, child - 1))) for child in range(len(node_names))]
    inputs = tuple(f"i{number}" for number in range(draw(st.integers(1, most_inputs))))
    # The node, in a tree, where records of a source are; -1 for inputs.
    place = dict.fromkeys(inputs, -1)
    read: set[str] = set()
    operators: list[Operator] = []
    for number in range(draw(st.integers(1, most_operators))):
        free = [name for name in place if splits or name not in read]
        if not free:
            break
        node = draw(st.integers(0, len(node_names) - 1))
        if tree:
            near = {node, parents[node], *([-1] if node == 0 else [])}
            free = [name for name in free if place[name] in near]
        if not free:
            continue
        operator = draw(_operators(f"o{number}", node_names[node], free, merges))
        operators.append(operator)
        read.update(operator.sources)
        place[operator.name] = node
    if not operators:
        operators = [Operator("o0", node_names[0], draw(_COSTS), 1.0, inputs[:1])]
    outputs = draw(_outputs(operators))
    return Network(
        nodes,
        inputs,
        tuple(operators),
        outputs,
        draw(_links(node_names)) if links else {},
        draw(_floors(outputs)) if floors else {},
    )


@st.composite
def _operators(draw: st.DrawFn, name: str, node: str, free: list[str], merges: bool) -> Operator:
    kinds = [OperatorKind.CHAIN]
    if merges:
        kinds += [OperatorKind.UNION] + ([OperatorKind.JOIN] if len(free) > 1 else [])
    kind = draw(st.sampled_from(kinds))
    count = {OperatorKind.CHAIN: 1, OperatorKind.JOIN: 2}.get(kind, min(2, len(free)))
    sources = draw(st.permutations(free))[:count]
    windows = (draw(_WINDOWS), draw(_WINDOWS)) if kind is OperatorKind.JOIN else ()
    return Operator(name, node, draw(_COSTS), draw(_SELECTIVITIES), tuple(sources), kind, windows)


@st.composite
def _outputs(draw: st.DrawFn, operators: list[Operator]) -> Mapping[str, float]:
    """Return weights of all operators that nothing reads, and of some others."""
    read = {source for operator in operators for source in operator.sources}
    return {
        operator.name: draw(_WEIGHTS)
        for operator in operators
        if operator.name not in read or draw(st.integers(0, 4)) == 0
    }


@st.composite
def _links(draw: st.DrawFn, nodes: list[str]) -> Mapping[tuple[str, str], float]:
    pairs = [(first, second) for first in nodes for second in nodes if first != second]
    return {pair: draw(_CAPACITIES) for pair in pairs if draw(st.booleans())}


@st.composite
def _floors(draw: st.DrawFn, outputs: Mapping[str, float]) -> Mapping[str, float]:
    return {name: draw(st.sampled_from([0.0, 0.1, 0.5])) for name in outputs if draw(st.booleans())}


@st.composite
def rates_of(draw: st.DrawFn, network: Network) -> Floats:
    """Return random rates of the inputs, float64[i]."""
    return np.array([draw(_RATES) for _ in network.inputs], np.float64)


@st.composite
def problems(draw: st.DrawFn, /, **shape: object) -> SheddingProblem:
    """Return a random network, as `networks` draws it, at random rates."""
    network = draw(networks(**shape))  # type: ignore[arg-type]
    return problem(network, *draw(rates_of(network)).tolist())
