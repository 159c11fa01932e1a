"""Complementary local plans: what a node drops at splits before its input suffers (section 6.2.2).

The list of drop locations in ascending order of their ratio of quality to load, each updated after
the ones before it have been dropped. As long as no input is in turn, the node processes its input
rates with drops at splits alone.
"""

import heapq
from dataclasses import dataclass

import numpy as np

from algorithms.compiled import compiled
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.network import Edge, Network
from algorithms.vocabulary import Floats, Ints


@dataclass(frozen=True, eq=False)
class DropList:
    """The drop locations of a node with one resource, in the order in which it drops them.

    `order` int64[k]: places of locations; `ratios` float64[k]: results per unit of the resource,
    ascending. Stage s is the state after the first s drops: `loads` float64[k + 1, e], the part of
    the resource that a record of each stream uses, and `values` float64[k + 1, e], its results.
    `last` int64[e]: the last stage in which each stream is kept.
    """

    model: FlowModel
    order: Ints
    ratios: Floats
    loads: Floats
    values: Floats
    last: Ints

    @classmethod
    def of(cls, model: FlowModel, weights: Floats) -> "DropList":
        """Return the list of a network with one node, with these weights of its outputs."""
        return _Greedy(model, weights).drop_list()

    def place(self, rates: Floats) -> tuple[Ints, Floats, Floats]:
        """Return the stage, the part of its drop, and the results, for rates float64[n, e].

        Stage 0 is not a drop; stage s drops that part of location s, and all before. Stage -1:
        drops at splits, before any input that is used is in turn, are not sufficient.
        """
        stages = np.empty(len(rates), np.int64)
        parts, scores = np.zeros(len(rates)), np.zeros(len(rates))
        _place(rates, self.loads, self.values, self.last, stages, parts, scores)
        return stages, parts, scores

    def flows(self, rates: Floats, stage: int, part: float) -> Floats:
        """Return the flows of the drop locations, float64[d]."""
        keep = np.ones(len(self.model.values))
        if not stage:
            return self.model.flows(keep, rates)
        keep[self.order[: stage - 1]] = 0.0
        before = self.model.flows(keep, rates)
        keep[self.order[stage - 1]] = 0.0
        return before * (1 - part) + self.model.flows(keep, rates) * part


@compiled
def _place(
    rates: Floats,
    loads: Floats,
    values: Floats,
    last: Ints,
    stages: Ints,
    parts: Floats,
    scores: Floats,
) -> None:
    for row in range(len(rates)):
        high = len(loads) - 1
        for stream in range(rates.shape[1]):
            if rates[row, stream] > 0 and last[stream] < high:
                high = last[stream]
        if np.dot(loads[high], rates[row]) > 1.0 + 1e-12:
            stages[row] = -1
            continue
        low = 0
        while low < high:
            middle = (low + high) // 2
            if np.dot(loads[middle], rates[row]) > 1.0 + 1e-12:
                low = middle + 1
            else:
                high = middle
        stages[row] = low
        scores[row] = np.dot(values[low], rates[row])
        if low > 0:
            over = np.dot(loads[low - 1], rates[row])
            within = np.dot(loads[low], rates[row])
            parts[row] = min(1.0, max(0.0, (over - 1.0) / (over - within)))
            more = np.dot(values[low - 1], rates[row])
            scores[row] += (1.0 - parts[row]) * (more - scores[row])


class _Greedy:
    """The state of the greedy procedure: what a record yields and uses with the drops so far."""

    def __init__(self, model: FlowModel, weights: Floats) -> None:
        self.model = model
        self.network: Network = model.network
        capacity = float(model.capacities[0])
        self.costs = {item.name: item.cost / capacity for item in self.network.operators}
        self.weights = dict(zip(self.network.outputs, weights.tolist(), strict=True))
        self.gains = {
            Edge(source, operator.name): gain
            for operator in self.network.operators
            for source, gain in zip(operator.sources, operator.gains, strict=True)
        }
        self.locations: list[Edge | str] = [*self.network.inputs, *self.network.split_edges]
        self.places = {item: place for place, item in enumerate(self.locations)}
        self.dropped: set[Edge | str] = set()
        # Value and load of a record that leaves an input or operator.
        self.leaving: dict[str, tuple[float, float]] = {}
        for operator in reversed(self.network.order):
            self.leaving[operator.name] = self._leaving(operator.name)
        for name in self.network.inputs:
            self.leaving[name] = self._leaving(name)

    def _leaving(self, name: str) -> tuple[float, float]:
        value, load = self.weights.get(name, 0.0), 0.0
        for target in self.network.consumers[name]:
            edge = Edge(name, target)
            if edge not in self.dropped:
                more, used = self._of_edge(edge)
                value, load = value + more, load + used
        return value, load

    def _of_edge(self, edge: Edge) -> tuple[float, float]:
        value, load = self.leaving[edge.target]
        gain = self.gains[edge]
        return gain * value, self.costs[edge.target] + gain * load

    def _state(self, location: Edge | str) -> tuple[float, float]:
        return self._of_edge(location) if isinstance(location, Edge) else self.leaving[location]

    def _ratio(self, location: Edge | str) -> float:
        value, load = self._state(location)
        # Sums are made again after each drop, so a load of nothing is exactly 0.
        return value / load if load > 0 else np.inf

    def drop_list(self) -> DropList:
        """Return the complete list."""
        heap = [(self._ratio(item), place) for place, item in enumerate(self.locations)]
        heapq.heapify(heap)
        order, ratios, stages = [], [], [self._stage()]
        while heap and heap[0][0] < np.inf:
            ratio, place = heapq.heappop(heap)
            location = self.locations[place]
            if location in self.dropped or ratio != self._ratio(location):
                continue  # another entry has the ratio after later drops
            self.dropped.add(location)
            order.append(place)
            ratios.append(ratio)
            for changed in self._drop(location):
                heapq.heappush(heap, (self._ratio(self.locations[changed]), changed))
            stages.append(self._stage())
        values, loads = np.moveaxis(np.array(stages), 2, 0)
        last = np.full(self.model.inputs, len(order), np.int64)
        for stage, place in enumerate(order):
            if place < self.model.inputs:
                last[place] = stage
        return DropList(self.model, np.array(order, np.int64), np.array(ratios), loads.copy(),
                        values.copy(), last)  # fmt: skip

    def _stage(self) -> list[tuple[float, float]]:
        return [(0.0, 0.0) if name in self.dropped else self.leaving[name]
                for name in self.network.inputs]  # fmt: skip

    def _drop(self, location: Edge | str) -> list[int]:
        """Update what is upstream of a dropped location; return places of changed ratios."""
        return [] if isinstance(location, str) else self._update(location.source)

    def _update(self, name: str) -> list[int]:
        self.leaving[name] = self._leaving(name)
        if name in self.network.inputs:
            return [self.places[name]] if name not in self.dropped else []
        changed = []
        for source in self.network.by_name[name].sources:
            edge = Edge(source, name)
            if edge in self.dropped:
                continue
            if edge in self.places:
                changed.append(self.places[edge])
            changed += self._update(source)
        return changed
