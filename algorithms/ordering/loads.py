"""Units of work on nodes, and the loads of the nodes that have them.

The readable form for few units; `algorithms.ordering.problem` has the arrays for many.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from algorithms.ordering.problem import checked_capacities
from algorithms.vocabulary import Floats


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """A unit of work that moves as a whole: the sources it reads, and its unshared load.

    A node receives a source once for all its units that read it (paper 000, section 2).
    """

    sources: tuple[int, ...] = ()
    load: float = 0.0


@dataclass(frozen=True, slots=True)
class UnitMove:
    """A unit that moves from one node to another."""

    unit: WorkUnit
    source: int
    target: int


class Loads:
    """The loads of nodes while units are added.

    `rates`: records/s of each source; `capacities`: records/s of each node; `resident`: the units
    and the node of each.
    """

    def __init__(
        self,
        rates: Sequence[float],
        capacities: Sequence[float],
        resident: Iterable[tuple[WorkUnit, int]],
    ) -> None:
        self.rates: Floats = np.array(rates, np.float64)
        self.capacities = checked_capacities(capacities)
        self._readers: list[dict[int, int]] = [{} for _ in capacities]
        self.loads: Floats = np.zeros(len(capacities))
        for unit, node in resident:
            self.put(unit, node)

    def added(self, unit: WorkUnit, node: int) -> float:
        """Return by how much a unit would raise a node's load, records/s."""
        readers = self._readers[node]
        new = (float(self.rates[source]) for source in unit.sources if not readers.get(source))
        return sum(new, unit.load)

    def put(self, unit: WorkUnit, node: int) -> None:
        """Put a unit on a node."""
        self.loads[node] += self.added(unit, node)
        readers = self._readers[node]
        for source in unit.sources:
            readers[source] = readers.get(source, 0) + 1

    def readers(self, node: int, source: int) -> int:
        """Return how many units of a node read a source."""
        return self._readers[node].get(source, 0)
