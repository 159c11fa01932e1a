"""The query networks of section 8 of paper 003, rebuilt as far as its text describes them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from algorithms.errors import BadParameters
from algorithms.shedding.network import Network, Operator

PARENT: Final = "parent"
CHILD: Final = "child"
CROSSED: Final = "crossed"
PARALLEL: Final = "parallel"
LAYOUTS: Final = (CROSSED, PARALLEL)
MS_PER_S: Final = 1000.0


def chains(larger_ms: float, smaller_ms: float, inputs: int = 2, layout: str = CROSSED) -> Network:
    """Return chains of two operators on two nodes, of selectivity and weight 1 (figure 9).

    Chains have the costs larger, smaller in turn on the first node; on the second the other cost
    of the two if they are crossed, and the same cost if they are parallel. So the costs on both
    nodes are equal in sum. Raises `BadParameters` on an odd number of inputs.
    """
    if inputs % 2:
        raise BadParameters({"inputs": [f"must be even, not {inputs}"]})
    costs = (larger_ms / MS_PER_S, smaller_ms / MS_PER_S)
    operators = []
    for chain in range(inputs):
        first, second = costs[chain % 2], costs[(chain + (layout == CROSSED)) % 2]
        operators.append(Operator(f"p{chain + 1}", PARENT, first, 1.0, (f"i{chain + 1}",)))
        operators.append(Operator(f"c{chain + 1}", CHILD, second, 1.0, (f"p{chain + 1}",)))
    return Network(
        {PARENT: 1.0, CHILD: 1.0},
        tuple(f"i{chain + 1}" for chain in range(inputs)),
        tuple(operators),
        {f"c{chain + 1}": 1.0 for chain in range(inputs)},
    )


def fan_out(common_ms: float, branch_ms: Sequence[float]) -> Network:
    """Return an operator that feeds a branch per cost, all on one node (section 8.2.3)."""
    operators = [Operator("common", "node", common_ms / MS_PER_S, 1.0, ("i1",))]
    for number, cost in enumerate(branch_ms, 1):
        operators.append(Operator(f"b{number}", "node", cost / MS_PER_S, 1.0, ("common",)))
    outputs = {operator.name: 1.0 for operator in operators[1:]}
    return Network({"node": 1.0}, ("i1",), tuple(operators), outputs)


def random_branches(branches: int, least_ms: float, most_ms: float, seed: int) -> list[float]:
    """Return the costs of branches in ms, drawn uniformly."""
    costs: list[float] = np.random.default_rng(seed).uniform(least_ms, most_ms, branches).tolist()
    return costs


def with_selectivity(network: Network, operator: str, selectivity: float) -> Network:
    """Return the network with another selectivity of an operator."""
    return _changed(
        network, {operator: replace(network.by_name[operator], selectivity=selectivity)}
    )


def with_moved_load(network: Network, parent: str, child: str, moved_ms: float) -> Network:
    """Return the network with cost of one operator moved to another (figure 15(c)).

    Raises `BadParameters` if the operator has less.
    """
    source, target = network.by_name[parent], network.by_name[child]
    rest = source.cost - moved_ms / MS_PER_S
    if rest < 0:
        why = f"must be at least the load that moves, {moved_ms:g} ms"
        raise BadParameters({"larger_ms": [why]})
    more = target.cost + moved_ms / MS_PER_S
    return _changed(
        network, {parent: replace(source, cost=rest), child: replace(target, cost=more)}
    )


def with_split(network: Network, node: str) -> Network:
    """Return the network with branches on a node, as figure 15(a) discusses.

    Each operator of the node keeps an eighth of its cost and feeds two branches, with two and five
    eighths of the cost, as in figure 7. Both have results with the weight of the operator.
    """
    operators: list[Operator] = []
    outputs = dict(network.outputs)
    for item in network.operators:
        if item.node != node:
            operators.append(item)
            continue
        weight = outputs.pop(item.name, 0.0)
        operators.append(replace(item, cost=item.cost / 8))
        for branch, part in (("a", 2 / 8), ("b", 5 / 8)):
            name = f"{item.name}{branch}"
            operators.append(Operator(name, node, item.cost * part, 1.0, (item.name,)))
            outputs[name] = weight
    return replace(network, operators=tuple(operators), outputs=outputs)


def _changed(network: Network, operators: dict[str, Operator]) -> Network:
    changed = tuple(operators.get(item.name, item) for item in network.operators)
    return replace(network, operators=changed)
