"""In which order the moves of a plan are carried out, so that no node is worse off on the way.

What Weir adds to the papers, which look at the beginning and the end of a plan only. A prefix of
the order is what has been carried out when an operator stops.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.errors import BadProblem
from algorithms.vocabulary import Floats

# Sums of rates in another order differ in the last digits.
SLACK: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Unit:
    """What moves as a whole: the sources it reads, and a load that it shares with nobody.

    A node receives a source once, whatever number of its units read it (paper 000, section 2).
    """

    sources: tuple[int, ...] = ()
    load: float = 0.0


@dataclass(frozen=True, slots=True)
class Move:
    """A unit that goes from one node to another."""

    unit: Unit
    source: int
    target: int


@dataclass(frozen=True)
class Order:
    """The order of moves, by their places in what was given, and what it comes to.

    `imbalance`, `worst` float64[moves]: after each of them, the largest load/capacity less the
    mean, and the largest. `start`: the largest at the beginning. `safe`: whether no prefix has a
    node worse loaded than the worst one at the beginning.
    """

    order: tuple[int, ...]
    imbalance: Floats
    worst: Floats
    start: float
    safe: bool


class Loads:
    """The loads of nodes while units come and go.

    `rates`: records/s of each source; `capacities`: records/s of each node; `resident`: the units
    and the node of each.
    """

    def __init__(
        self,
        rates: Sequence[float],
        capacities: Sequence[float],
        resident: Iterable[tuple[Unit, int]],
    ) -> None:
        if any(not capacity > 0 for capacity in capacities):
            raise BadProblem("capacities", "must be above 0")
        self._rates = [float(rate) for rate in rates]
        self._capacities = np.array(capacities, np.float64)
        self._readers: list[dict[int, int]] = [{} for _ in capacities]
        self.loads: Floats = np.zeros(len(capacities))
        for unit, node in resident:
            self.put(unit, node)

    def added(self, unit: Unit, node: int) -> float:
        """Return by how much a unit would raise a node's load, records/s."""
        readers = self._readers[node]
        new = (self._rates[source] for source in unit.sources if not readers.get(source))
        return sum(new, unit.load)

    def put(self, unit: Unit, node: int) -> None:
        """Put a unit on a node."""
        self.loads[node] += self.added(unit, node)
        readers = self._readers[node]
        for source in unit.sources:
            readers[source] = readers.get(source, 0) + 1

    def take(self, unit: Unit, node: int) -> None:
        """Take a unit from a node that has it."""
        readers = self._readers[node]
        for source in unit.sources:
            readers[source] -= 1
        self.loads[node] -= self.added(unit, node)

    def readers(self, node: int, source: int) -> int:
        """Return how many units of a node read a source."""
        return self._readers[node].get(source, 0)

    def share_with(self, unit: Unit, node: int) -> float:
        """Return the node's load/capacity if it had the unit, too."""
        return float((self.loads[node] + self.added(unit, node)) / self._capacities[node])

    @property
    def shares(self) -> Floats:
        """Load/capacity of each node."""
        return np.asarray(self.loads / self._capacities)


def ordered(loads: Loads, moves: Sequence[Move]) -> Order:
    """Order moves greedily; `loads` is as it is before them, and as after them in the end.

    Among the moves after which the target is no worse off than the worst node at the beginning,
    those of the worst loaded nodes come first. Where there is none, the one that does least harm
    is taken: some plans have no safe order, as when two full nodes swap.
    """
    start = float(loads.shares.max(initial=0.0))
    walk = _Walk(loads, moves, start)
    remaining = list(range(len(moves)))
    while remaining:
        shares = loads.shares
        remaining.sort(key=lambda at: (-shares[moves[at].source], at))
        left = [at for at in remaining if not walk.takes(at)]
        if len(left) == len(remaining):
            least = min(left, key=lambda at: (walk.share_after(at), at))
            walk.take(least)
            left.remove(least)
        remaining = left
    return walk.order()


class _Walk:
    """The moves that are made so far."""

    def __init__(self, loads: Loads, moves: Sequence[Move], start: float) -> None:
        self._loads, self._moves, self._start = loads, moves, start
        self._order: list[int] = []
        self._imbalance: list[float] = []
        self._worst: list[float] = []

    def share_after(self, at: int) -> float:
        move = self._moves[at]
        return self._loads.share_with(move.unit, move.target)

    def takes(self, at: int) -> bool:
        """Make a move if it is safe."""
        safe = self.share_after(at) <= self._start + SLACK
        if safe:
            self.take(at)
        return safe

    def take(self, at: int) -> None:
        move = self._moves[at]
        self._loads.take(move.unit, move.source)
        self._loads.put(move.unit, move.target)
        shares = self._loads.shares
        self._order.append(at)
        self._worst.append(float(shares.max()))
        self._imbalance.append(float(shares.max() - shares.mean()))

    def order(self) -> Order:
        worst = np.array(self._worst)
        safe = bool((worst <= self._start + SLACK).all())
        return Order(tuple(self._order), np.array(self._imbalance), worst, self._start, safe)
