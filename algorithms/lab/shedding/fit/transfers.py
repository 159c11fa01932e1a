"""Links with a bandwidth as nodes: each edge on a link is an operator that a record passes."""

from collections.abc import Mapping
from dataclasses import replace

from algorithms.shedding.network import ARROW, Edge, Network, Operator


def with_transfers(network: Network) -> tuple[Network, Mapping[Edge, Edge]]:
    """Return the network with a node for each link, and the new edge of each edge on a link.

    The capacity of such a node is the bandwidth. Each edge on the link is an operator there, with
    cost 1 and selectivity 1.
    """
    edges: dict[Edge, Edge] = {}
    operators: list[Operator] = []
    for operator in network.operators:
        sources = []
        for source in operator.sources:
            pair = _link(network, source, operator)
            if pair not in network.links:
                sources.append(source)
                continue
            # The line break keeps it apart from names of operators.
            transfer = f"{source} to {operator.name}\n"
            edges[Edge(source, operator.name)] = Edge(source, transfer)
            operators.append(Operator(transfer, _node(pair), 1.0, 1.0, (source,)))
            sources.append(transfer)
        operators.append(replace(operator, sources=tuple(sources)))
    if not edges:
        return network, edges
    nodes = {**network.nodes, **{_node(pair): limit for pair, limit in network.links.items()}}
    return Network(nodes, network.inputs, tuple(operators), network.outputs), edges


def _link(network: Network, source: str, operator: Operator) -> tuple[str, str]:
    origin = network.by_name[source].node if source in network.by_name else ""
    return origin, operator.node


def _node(pair: tuple[str, str]) -> str:
    return ARROW.join(pair)
