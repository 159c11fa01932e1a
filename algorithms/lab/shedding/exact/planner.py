"""The exact planner: optimal plans at any input rates, with certificates, mostly by look-ups.

Parts of the network that share nothing are planned separately. A part in which one resource binds,
or with two resources and no splits, has all its cuts in closed form. Other parts collect cuts and
optimal bases from linear programs, and solve a program only where no known basis is optimal.
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from algorithms.errors import BadProblem
from algorithms.lab.shedding.exact.part import Part
from algorithms.lab.shedding.fragments import fragments
from algorithms.shedding.network import MAX_NUMBER, Network
from algorithms.shedding.problem import SheddingPlan, SheddingProblem, trimmed
from algorithms.vocabulary import Floats, Ints


class ExactPlanner:
    """Optimal plans of a network at any input rates.

    It changes with every look-up (which regions were used last), so each thread needs its own.
    """

    def __init__(self, network: Network, parts: tuple[Part, ...] | None = None) -> None:
        self.network = network
        parts_of_network = fragments(network)
        self.parts = tuple(Part(item) for item in parts_of_network) if parts is None else parts

    def updated(self, network: Network) -> "ExactPlanner":
        """Return the planner of a changed network, with the regions that are valid there, too.

        After a change of capacities, costs, selectivities, weights or floors, every basis is
        computed again and kept if its prices are still optimal; equal parts stay as they are.
        """
        before = {_names(part.network): part for part in self.parts}
        parts = []
        for fragment in fragments(network):
            old = before.get(_names(fragment))
            parts.append(Part(fragment) if old is None else old.updated(fragment))
        return ExactPlanner(network, tuple(parts))

    @property
    def is_complete(self) -> bool:
        """Return whether the planner knows all cuts of all parts."""
        return all(part.is_complete for part in self.parts)

    @property
    def cuts(self) -> int:
        """Return the number of cuts of parts that are known."""
        return sum(part.cut_count for part in self.parts)

    @property
    def regions(self) -> int:
        """Return the number of regions that are known."""
        return sum(part.regions.count for part in self.parts)

    @property
    def programs(self) -> int:
        """Return the number of linear programs that the planner solved."""
        return sum(part.programs for part in self.parts)

    def flows(self, rates: Floats) -> Floats:
        """Return the optimal flows float64[d] at rates float64[i].

        In the order of `Network.locations` and `Network.inputs`. Raises `BadProblem`, and
        `NotProven` if floors are not feasible or HiGHS does not solve a program.
        """
        point = self._checked(rates, 1)
        if self._is_one_part:
            return self.parts[0].flows(point)
        # Inputs without operators keep everything.
        result = np.zeros(len(self.network.locations))
        result[: len(point)] = point
        for part, (inputs, locations) in zip(self.parts, self._places, strict=True):
            result[locations] = part.flows(point[inputs])
        return result

    def value(self, rates: Floats) -> float:
        """Return the optimal value at rates float64[i]. Raises as `flows` does."""
        return float(self.values(np.atleast_2d(rates))[0])

    def values(self, points: Floats) -> Floats:
        """Return the optimal values float64[p] at points float64[p, i]. Raises as `flows` does."""
        checked = self._checked(points, 2)
        result = np.zeros(len(checked))
        for part, (inputs, _) in zip(self.parts, self._places, strict=True):
            result += part.values(np.ascontiguousarray(checked[:, inputs]))
        return result

    def keep(self, rates: Floats) -> Floats:
        """Return the fraction that each location keeps, float64[d]. Raises as `flows` does."""
        point = self._checked(rates, 1)
        result = np.ones(len(self.network.locations))
        for part, (inputs, locations) in zip(self.parts, self._places, strict=True):
            own = point[inputs]
            result[locations] = part.model.keep(part.flows(own), own)
        return result

    def plan(self, rates: Mapping[str, float]) -> SheddingPlan:
        """Return an optimal plan at rates by input. Raises as `flows` does."""
        problem = SheddingProblem(self.network, rates)
        keep = self.keep(problem.vector).tolist()
        parts = dict(zip(self.network.locations, keep, strict=True))
        return SheddingPlan.of(problem, trimmed(self.network, parts))

    @cached_property
    def _places(self) -> list[tuple[Ints, Ints]]:
        """Return the places of the inputs and locations of each part."""
        place = {name: index for index, name in enumerate(self.network.locations)}
        return [
            (
                np.array([place[name] for name in part.network.inputs], np.int64),
                np.array([place[name] for name in part.network.locations], np.int64),
            )
            for part in self.parts
        ]

    @cached_property
    def _is_one_part(self) -> bool:
        count = len(self.network.locations)
        return len(self.parts) == 1 and np.array_equal(self._places[0][1], np.arange(count))

    def _checked(self, rates: Floats, dimensions: int) -> Floats:
        result = np.ascontiguousarray(rates, np.float64)
        count = len(self.network.inputs)
        if result.ndim != dimensions or result.shape[-1] != count:
            raise BadProblem("rates", f"must have {count} inputs, not shape {result.shape}")
        # False for NaN, too.
        if not ((result >= 0) & (result <= MAX_NUMBER)).all():
            raise BadProblem("rates", f"must be from 0 to {MAX_NUMBER:g}")
        return result


def _names(network: Network) -> frozenset[str]:
    return frozenset(network.by_name)
