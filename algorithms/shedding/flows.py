"""A query network as linear equations of its flows (paper 003, section 3).

The flow of a drop location is the records per unit of time that it keeps. What every operator gets
is linear in the flows, so loads and results are too, and input rates are bounds alone: with
y = rate x keep, an input has y <= rate, and a split edge y <= what arrives there. The prefix
variables of section 3.2, times the rate and the selectivities before them, are these flows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from algorithms.shedding.network import Edge, Network
from algorithms.vocabulary import Floats, Ints

# Coefficients of flows, by place of the drop location.
_Terms = dict[int, float]


@dataclass(frozen=True, eq=False)
class FlowModel:
    """Linear equations of the flows y float64[d], in the order of `Network.locations`.

    `loads` sparse[r, d]: units of each resource (`Network.resources`) per kept record;
    `capacities` float64[r]. `arrivals` sparse[s, d]: records that arrive at each split edge.
    `results` sparse[o, d]: records of each output, in the order of `Network.outputs`.
    """

    network: Network
    loads: Any
    capacities: Floats
    arrivals: Any
    results: Any

    @classmethod
    def of(cls, network: Network) -> "FlowModel":
        """Return the equations of a network."""
        place = {name: index for index, name in enumerate(network.locations)}
        leaving: dict[str, _Terms] = {name: {place[name]: 1.0} for name in network.inputs}
        row = {name: index for index, name in enumerate(network.resources)}
        loads: list[_Terms] = [{} for _ in row]
        for operator in network.order:
            out: _Terms = {}
            for source, gain in zip(operator.sources, operator.gains, strict=True):
                arriving = _arriving(Edge(source, operator.name), leaving, place)
                _add(out, arriving, gain)
                _add(loads[row[operator.node]], arriving, operator.cost)
                if source in network.by_name:
                    link = Edge(network.by_name[source].node, operator.node).name
                    if link in row:
                        _add(loads[row[link]], arriving, 1.0)
            leaving[operator.name] = out
        arrivals = [leaving[edge.source] for edge in network.split_edges]
        results = [leaving[name] for name in network.outputs]
        capacities = np.array([*network.nodes.values(), *network.links.values()], np.float64)
        return cls(network, _sparse(loads, len(place)), capacities,
                   _sparse(arrivals, len(place)), _sparse(results, len(place)))  # fmt: skip

    @property
    def inputs(self) -> int:
        """Return the number of inputs; their flows are the first ones."""
        return len(self.network.inputs)

    @cached_property
    def weights(self) -> Floats:
        """Return the weight of each output, float64[o]."""
        return np.array(list(self.network.outputs.values()), np.float64)

    @cached_property
    def values(self) -> Floats:
        """Return the weighted results per kept record of each location, float64[d]."""
        return np.asarray(self.results.T @ self.weights)

    @cached_property
    def floors(self) -> Floats:
        """Return the least part of its results that each output must keep, float64[o]."""
        floors = self.network.floors
        return np.array([floors.get(name, 0.0) for name in self.network.outputs], np.float64)

    @cached_property
    def covers(self) -> Any:
        """Return the rows of `Network.covers`, sparse[*, d]: a covered flow minus the other one.

        They are at most 0.
        """
        rows = [{covered: 1.0, covering: -1.0} for covered, covering in self._covers]
        return _sparse(rows, len(self.values))

    @cached_property
    def _covers(self) -> list[tuple[int, int]]:
        """Return the places of covered flows, each with that of the flow that covers it."""
        place = {name: index for index, name in enumerate(self.network.locations)}
        result = []
        for name, covered in self.network.covers.items():
            (source,) = self.network.by_name[name].sources
            for other in covered:
                edges = Edge(source, other).name, Edge(source, name).name
                result.append((place[edges[0]], place[edges[1]]))
        return result

    def covered(self, flows: Floats) -> Floats:
        """Return flows float64[d] in which operators that cover others get the largest of them."""
        if not self._covers:
            return flows
        result = flows.copy()
        places, covering = np.array(self._covers).T
        result[covering] = 0.0
        np.maximum.at(result, covering, flows[places])
        return result

    def unshed(self, rates: Floats) -> Floats:
        """Return the flows if nothing is dropped; `rates`: float64[i], or float64[i, points]."""
        return self.flows(np.ones(len(self.values)), rates)

    def flows(self, keep: Floats, rates: Floats) -> Floats:
        """Return the flows if locations keep these fractions, float64[d]; `rates`: as above."""
        flows = np.zeros((len(self.values), *rates.shape[1:]))
        flows[: self.inputs] = (rates.T * keep[: self.inputs]).T
        for places, arrivals in self._split_levels:
            flows[places] = ((arrivals @ flows).T * keep[places]).T
        return flows

    def keep(self, flows: Floats, rates: Floats) -> Floats:
        """Return the fraction that each location keeps, float64[d]; 1 where nothing arrives."""
        arriving = np.concatenate([rates, self.arrivals @ flows])
        some = arriving > 0
        result = np.ones(len(flows))
        result[some] = np.clip(flows[some] / arriving[some], 0.0, 1.0)
        return result

    @cached_property
    def _split_levels(self) -> list[tuple[Ints, Any]]:
        """Return places of split edges and what arrives there, by the split edges before them.

        A split edge whose records pass at most n others before it is in level n.
        """
        starts, terms = self.arrivals.indptr.tolist(), self.arrivals.indices.tolist()
        level = [-1] * self.inputs + [0] * self.arrivals.shape[0]
        order = {operator.name: index for index, operator in enumerate(self.network.order)}
        sources = [order.get(edge.source, -1) for edge in self.network.split_edges]
        for row in sorted(range(len(sources)), key=sources.__getitem__):
            before = terms[starts[row] : starts[row + 1]]
            level[self.inputs + row] = 1 + max((level[place] for place in before), default=-1)
        levels = np.array(level, np.int64)
        places = (np.flatnonzero(levels == number) for number in range(max(level) + 1))
        return [(each, self.arrivals[each - self.inputs]) for each in places]


def _arriving(edge: Edge, leaving: Mapping[str, _Terms], place: Mapping[str, int]) -> _Terms:
    """Return the flow of an edge: its own, or all that leaves its source."""
    return {place[edge.name]: 1.0} if edge.name in place else leaving[edge.source]


def _add(terms: _Terms, more: _Terms, factor: float) -> None:
    for place, value in more.items():
        terms[place] = terms.get(place, 0.0) + value * factor


def _sparse(rows: list[_Terms], columns: int) -> Any:
    """Return rows of coefficients as a sparse array."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - its import takes a fifth of a second

    starts = np.cumsum([0, *(len(row) for row in rows)])
    places = [place for row in rows for place in row]
    data = [value for row in rows for value in row.values()]
    return csr_array((np.array(data, np.float64), places, starts), shape=(len(rows), columns))
