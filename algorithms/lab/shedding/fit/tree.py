"""Query networks as trees of nodes: nodes that form no tree are planned as one cluster.

Streams are named after the input or operator that they leave. The streams of a cluster enter it
from its parent; those of a root are inputs. A stream that a descendant reads passes its ancestors.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Final

from algorithms.errors import BadProblem, TooLarge
from algorithms.lab.shedding.fit.transfers import with_transfers
from algorithms.lab.shedding.fit.valued import valued_network
from algorithms.shedding.network import ARROW, Edge, Network, Operator

MAX_CLUSTERS: Final = 500
MAX_NODES_TO_CLUSTER: Final = 2_000


@dataclass(frozen=True)
class Cluster:
    """A node, or nodes that form no tree among each other, with its part of the network.

    `network`: its operators; the streams that enter are its inputs, and each stream that leaves
    for a child has an operator without cost, the outlet. `outlets`: of each child, the streams
    that enter it, with the names of their outlets.
    """

    name: str
    parent: str | None
    network: Network
    outlets: Mapping[str, tuple[tuple[str, str], ...]]

    @property
    def streams(self) -> tuple[str, ...]:
        """Return the streams that enter the cluster."""
        return self.network.inputs


@dataclass(frozen=True)
class ClusterTree:
    """The clusters of a network by name, children before their parents.

    `network`: the whole network; `transfers`: the edges on links, and those to the operators that
    stand for them.
    """

    network: Network
    clusters: Mapping[str, Cluster]
    transfers: Mapping[Edge, Edge]

    @classmethod
    def of(cls, network: Network) -> "ClusterTree":
        """Return the tree of a network. Raises `BadProblem` if it has floors, and `TooLarge`."""
        if network.floors:
            raise BadProblem("floors", "are not in feasible input tables; use lp or exact")
        if len(network.nodes) > MAX_NODES_TO_CLUSTER:
            raise TooLarge(f"feasible input tables are for at most {MAX_NODES_TO_CLUSTER:,} nodes")
        linked, edges = with_transfers(network)
        valued = valued_network(linked)
        clusters = {} if valued is None else _clusters(valued)
        if len(clusters) > MAX_CLUSTERS:
            raise TooLarge(f"{len(clusters):,} nodes; at most {MAX_CLUSTERS:,} exchange tables")
        return cls(network, clusters, edges)

    @property
    def roots(self) -> tuple[str, ...]:
        """Return the clusters without a parent."""
        return tuple(name for name, item in self.clusters.items() if item.parent is None)

    @cached_property
    def flow_terms(self) -> tuple[tuple[str, Mapping[str, float]] | None, ...]:
        """Return each split edge of the whole network as flows of drop locations of a cluster.

        None for an edge to an operator that yields no weighted result.
        """
        return tuple(
            self._of_edge(self.transfers.get(edge, edge)) for edge in self.network.split_edges
        )

    def _of_edge(self, edge: Edge) -> tuple[str, Mapping[str, float]] | None:
        name = self._cluster_of.get(edge.target)
        if name is None:
            return None
        local = self.clusters[name].network
        if edge.source not in local.by_name[edge.target].sources:
            return None
        return name, _terms(local, edge, {*local.locations})

    @cached_property
    def _cluster_of(self) -> Mapping[str, str]:
        return {
            operator.name: cluster.name
            for cluster in self.clusters.values()
            for operator in cluster.network.operators
        }


def _terms(network: Network, edge: Edge, locations: Container[str]) -> dict[str, float]:
    """Return the records of an edge as flows of drop locations, with their factors."""
    if edge.name in locations:
        return {edge.name: 1.0}
    if edge.source in network.inputs:
        return {edge.source: 1.0}
    result: dict[str, float] = {}
    operator = network.by_name[edge.source]
    for source, gain in zip(operator.sources, operator.gains, strict=True):
        for name, factor in _terms(network, Edge(source, operator.name), locations).items():
            result[name] = result.get(name, 0.0) + gain * factor
    return result


def _clusters(network: Network) -> dict[str, Cluster]:
    """Return the clusters of a network, children before their parents."""
    cluster_of = _tree_partition(network)
    parents = _parents(network, cluster_of)
    order = [*TopologicalSorter(parents).static_order()][::-1]
    children = {name: [child for child in order if name in parents[child]] for name in order}
    operators: dict[str, list[Operator]] = {name: [] for name in order}
    for operator in network.operators:
        operators[cluster_of[operator.node]].append(operator)
    streams: dict[str, list[str]] = {}
    result = {}
    for name in order:
        local = {operator.name for operator in operators[name]}
        below = [stream for child in children[name] for stream in streams[child]]
        read = {source for operator in operators[name] for source in operator.sources}
        entering = {*read, *below} - local
        streams[name] = [item for item in _all_streams(network) if item in entering]
        result[name] = _cluster(network, name, next(iter(parents[name]), None), operators[name],
                                streams[name], {child: streams[child] for child in children[name]},
                                cluster_of)  # fmt: skip
    return result


def _all_streams(network: Network) -> Iterable[str]:
    return (*network.inputs, *(operator.name for operator in network.operators))


def _cluster(
    network: Network,
    name: str,
    parent: str | None,
    operators: list[Operator],
    streams: list[str],
    children: Mapping[str, list[str]],
    cluster_of: Mapping[str, str],
) -> Cluster:
    nodes = {node: capacity for node, capacity in network.nodes.items() if cluster_of[node] == name}
    outlets = {
        # Line breaks keep names apart from those of operators; a link has an arrow in its name.
        child: tuple((stream, _outlet(stream, child)) for stream in needed)
        for child, needed in children.items()
    }
    exits = [
        Operator(outlet, next(iter(nodes)), 0.0, 1.0, (stream,))
        for pairs in outlets.values()
        for stream, outlet in pairs
    ]
    own = {operator.name for operator in operators}
    outputs = {item: weight for item, weight in network.outputs.items() if item in own}
    local = Network(nodes, tuple(streams), (*operators, *exits),
                    {**outputs, **dict.fromkeys((item.name for item in exits), 0.0)})  # fmt: skip
    return Cluster(name, parent, local, outlets)


def _outlet(stream: str, child: str) -> str:
    return f"{stream}\n{child}".replace(ARROW, "\n")


def _tree_partition(network: Network) -> dict[str, str]:
    """Return the cluster of each node: the clusters form a forest."""
    members = {node: [node] for node in network.nodes}
    cluster_of = {node: node for node in network.nodes}
    while True:
        parents = _parents(network, cluster_of)
        try:
            TopologicalSorter(parents).prepare()
        except CycleError as error:
            group = {*error.args[1]}
        else:
            group = next((group for group in parents.values() if len(group) > 1), set())
        if not group:
            # Names follow the order of nodes, whatever was merged first.
            names = {name: "+".join(_ordered(network, nodes)) for name, nodes in members.items()}
            return {node: names[name] for node, name in cluster_of.items()}
        first, *others = _ordered(network, group)
        for other in others:
            for node in members.pop(other):
                cluster_of[node] = first
                members[first].append(node)


def _ordered(network: Network, names: Iterable[str]) -> list[str]:
    chosen = {*names}
    return [name for name in network.nodes if name in chosen]


def _parents(network: Network, cluster_of: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the clusters from which records go to each cluster."""
    result: dict[str, set[str]] = {name: set() for name in cluster_of.values()}
    for operator in network.operators:
        target = cluster_of[operator.node]
        for source in operator.sources:
            if source in network.by_name:
                origin = cluster_of[network.by_name[source].node]
                if origin != target:
                    result[target].add(origin)
    return result
