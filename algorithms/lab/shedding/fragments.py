"""The independent parts of a network."""

from collections.abc import Sequence

from algorithms.shedding.network import Network, Operator


def fragments(network: Network) -> list[Network]:
    """Return the parts that share neither a node nor a link nor a record, as networks.

    Nodes and inputs without an operator are in no part.
    """
    # A node and an input may have the same name.
    nodes = [(True, name) for name in network.nodes]
    root = {item: item for item in (*nodes, *((False, name) for name in network.consumers))}

    def root_of(item: tuple[bool, str]) -> tuple[bool, str]:
        while root[item] != item:
            root[item] = item = root[root[item]]
        return item

    for operator in network.operators:
        sources = [(False, name) for name in operator.sources]
        for other in ((True, operator.node), *sources):
            root[root_of((False, operator.name))] = root_of(other)
    parts: dict[tuple[bool, str], list[Operator]] = {}
    for operator in network.operators:
        parts.setdefault(root_of((False, operator.name)), []).append(operator)
    # Everything hangs together, the usual case: nothing to build and check again.
    if len({root_of(item) for item in root}) == 1:
        return [network]
    return [_part(network, operators) for operators in parts.values()]


def _part(network: Network, operators: Sequence[Operator]) -> Network:
    """Return the network of some operators, which no other operator feeds."""
    names = {operator.name for operator in operators}
    nodes = {operator.node for operator in operators}
    read = {source for operator in operators for source in operator.sources}
    return Network(
        {node: capacity for node, capacity in network.nodes.items() if node in nodes},
        tuple(name for name in network.inputs if name in read),
        tuple(operators),
        {name: weight for name, weight in network.outputs.items() if name in names},
        {pair: limit for pair, limit in network.links.items() if nodes.issuperset(pair)},
        {name: floor for name, floor in network.floors.items() if name in names},
        {name: covered for name, covered in network.covers.items() if name in names},
    )
