"""The linear equations of a cluster of nodes, as far as feasible input tables need them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from algorithms.lab.shedding.fit.tree import Cluster
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.network import Edge, Network
from algorithms.vocabulary import Flags, Floats


@dataclass(frozen=True)
class Worth:
    """What a record of each stream that enters a subtree yields, float64[e].

    `values`: weighted results if nothing is dropped; `free`: those that need no resource at all,
    so that no plan drops them.
    """

    streams: tuple[str, ...]
    values: Floats
    free: Floats


@dataclass(frozen=True, eq=False)
class LocalModel:
    """The equations of a cluster: flows of its drop locations, of which its streams are first.

    `limits` float64[r, e]: the part of each resource that a record of each stream uses if nothing
    is dropped; `forced`: the same if all split edges drop everything. `gains` float64[x, e]:
    records at each outlet per record of each stream if nothing is dropped.
    """

    cluster: Cluster
    model: FlowModel
    limits: Floats
    forced: Floats
    gains: Floats
    unshed: Floats

    @classmethod
    def of(cls, cluster: Cluster) -> "LocalModel":
        """Return the equations of a cluster."""
        model = FlowModel.of(cluster.network)
        unshed = model.unshed(np.eye(model.inputs))
        scaled = np.asarray(model.loads.todense()) / model.capacities[:, None]
        outlets = len(cluster.network.outputs) - _outlet_count(cluster)
        gains = np.asarray(model.results.todense())[outlets:] @ unshed
        return cls(cluster, model, scaled @ unshed, scaled[:, : model.inputs].copy(), gains, unshed)

    @property
    def network(self) -> Network:
        """Return the operators of the cluster and its outlets."""
        return self.cluster.network

    @cached_property
    def has_splits(self) -> bool:
        """Return whether records of the cluster go to several places."""
        return bool(self.network.split_edges)

    @cached_property
    def through(self) -> Flags:
        """Return which streams pass the cluster to an outlet, bool[e]."""
        return np.asarray((self.gains > 0).any(axis=0))

    @property
    def forced_gains(self) -> Floats:
        """Return the records at each outlet if all split edges drop everything, float64[x, e]."""
        outlets = len(self.network.outputs) - len(self.gains)
        return np.asarray(self.model.results.todense())[outlets:, : self.model.inputs]

    @property
    def is_chain(self) -> bool:
        """Return whether each outlet has the records of one stream, and each stream one outlet."""
        linked = self.gains > 0
        return (
            not self.has_splits
            and bool((linked.sum(axis=0) <= 1).all())
            and bool((linked.sum(axis=1) == 1).all())
        )

    def at_outlets(self, flows: Floats) -> Floats:
        """Return the records at each outlet, float64[x]."""
        return np.asarray(self.model.results @ flows)[len(self.network.outputs) - len(self.gains) :]

    def free_flows(self, free: Floats, rates: Floats) -> Floats:
        """Return the flows of these rates at locations that yield free results, float64[d]."""
        keep = (free > 0).astype(np.float64)
        return self.model.flows(keep, rates) if keep[: len(rates)].any() else np.zeros(len(free))

    def outlet_values(self, children: Mapping[str, Worth]) -> tuple[Floats, Floats]:
        """Return values and free values of a record at each outlet, float64[x]."""
        worths = [children[child] for child in self.cluster.outlets]
        empty = [np.zeros(0)]
        return (
            np.concatenate([worth.values for worth in worths] or empty),
            np.concatenate([worth.free for worth in worths] or empty),
        )

    def output_values(self, outlet_values: Floats) -> Floats:
        """Return the weights of all outputs, with these values of the outlets, float64[o]."""
        return np.concatenate([self.model.weights[: -len(outlet_values) or None], outlet_values])

    def worth(self, children: Mapping[str, Worth]) -> Worth:
        """Return what a record of each stream yields in the cluster and below it."""
        values, free = self.outlet_values(children)
        total = self.output_values(values) @ (self.model.results @ self.unshed)
        return Worth(self.cluster.streams, total, self.free_values(free)[: self.model.inputs])

    def free_values(self, outlet_free: Floats) -> Floats:
        """Return what a record kept at each location yields without any resource, float64[d]."""
        network = self.network
        weights = dict(zip(network.outputs, self.output_values(outlet_free), strict=True))
        leaving: dict[str, float] = {}
        edges: dict[tuple[str, str], float] = {}
        for operator in reversed(network.order):
            own = _of_consumers(network, operator.name, edges) + weights.get(operator.name, 0.0)
            for source, gain in zip(operator.sources, operator.gains, strict=True):
                edges[source, operator.name] = gain * own if operator.cost == 0 else 0.0
        leaving = {name: _of_consumers(network, name, edges) for name in network.inputs}
        splits = [edges[edge] for edge in network.split_edges]
        return np.array([*leaving.values(), *splits], np.float64)

    def useful_rates(self, outlet_rates: Floats) -> Floats:
        """Return rates above which a stream yields no more results than free ones, float64[e].

        `outlet_rates` float64[x]: such rates of the outlets.
        """
        network = self.network
        names = list(network.outputs)[len(network.outputs) - len(outlet_rates) :]
        leaving = dict(zip(names, outlet_rates.tolist(), strict=True))
        for operator in reversed(network.order):
            targets = [self._useful(Edge(operator.name, name), leaving)
                       for name in network.consumers[operator.name]]  # fmt: skip
            leaving[operator.name] = max([leaving.get(operator.name, 0.0), *targets])
        rates = [
            max(self._useful(Edge(name, target), leaving) for target in network.consumers[name])
            for name in network.inputs
        ]
        with np.errstate(divide="ignore"):
            return np.asarray(np.minimum(rates, 1 / self.forced.max(axis=0)))

    def largest_arrivals(self, upstream: Floats) -> Floats:
        """Return upper bounds of the rates at each outlet, float64[x]; infinite without one.

        `upstream` float64[k, e]: the parts of other resources that a record of each stream uses.
        """
        network = self.network
        with np.errstate(divide="ignore"):
            rates = 1 / np.vstack([self.forced, upstream]).max(axis=0)
        leaving = dict(zip(network.inputs, rates.tolist(), strict=True))
        for operator in network.order:
            cost = operator.cost
            most = network.nodes[operator.node] / cost if cost > 0 else np.inf
            leaving[operator.name] = sum(
                gain * min(leaving[source], most)
                for source, gain in zip(operator.sources, operator.gains, strict=True)
            )
        names = list(network.outputs)[len(network.outputs) - len(self.gains) :]
        return np.array([leaving[name] for name in names], np.float64)

    def _useful(self, edge: Edge, leaving: Mapping[str, float]) -> float:
        target = self.network.by_name[edge.target]
        if target.cost > 0:
            return self.network.nodes[target.node] / target.cost
        return leaving[target.name] / dict(zip(target.sources, target.gains, strict=True))[edge[0]]


def _of_consumers(network: Network, name: str, edges: Mapping[tuple[str, str], float]) -> float:
    return sum(edges[name, target] for target in network.consumers[name])


def _outlet_count(cluster: Cluster) -> int:
    return sum(len(pairs) for pairs in cluster.outlets.values())
