"""Random moves, a certificate of their order, and the plain greedy rule to compare with."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.ordering import SLACK, MoveSet, Order, order_moves
from algorithms.ordering.problem import checked_capacities
from algorithms.rows import boundaries
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


@dataclass(frozen=True)
class Instance:
    """Units on nodes, and the node of each after the moves."""

    rates: list[float]
    capacities: list[float]
    units: list[WorkUnit]
    here: list[int]
    there: list[int]

    @property
    def moving(self) -> list[int]:
        """Return the units that move."""
        return [at for at, (a, b) in enumerate(zip(self.here, self.there, strict=True)) if a != b]

    def moves(self) -> list[UnitMove]:
        """Return the moves of all units that move."""
        return [UnitMove(self.units[at], self.here[at], self.there[at]) for at in self.moving]

    def loads(self) -> Loads:
        """Return the loads before the moves."""
        resident = zip(self.units, self.here, strict=True)
        return Loads(self.rates, self.capacities, resident)

    def shares(self, where: list[int]) -> Any:
        """Return load/capacity per node from scratch: each source once per node."""
        loads = np.zeros(len(self.capacities))
        for node in range(len(loads)):
            mine = [unit for unit, at in zip(self.units, where, strict=True) if at == node]
            sources = {source for unit in mine for source in unit.sources}
            loads[node] = sum(self.rates[s] for s in sources) + sum(unit.load for unit in mine)
        return loads / np.array(self.capacities)

    def prefixes(self, order: Order) -> Any:
        """Return load/capacity of each node before the moves and after each of them."""
        where, moving = list(self.here), self.moving
        found = [self.shares(where)]
        for at in order.order:
            where[moving[at]] = self.there[moving[at]]
            found.append(self.shares(where))
        return np.array(found)


def ordered(loads: Loads, moves: Sequence[UnitMove]) -> Order:
    """Order moves greedily; `loads` is as it is before them, and as after them in the end."""
    order = order_moves(move_set(loads, moves))
    for move in moves:
        make_move(loads, move)
    return order


def make_move(loads: Loads, move: UnitMove) -> None:
    """Take a unit from its node, and put it on its target."""
    readers = loads._readers[move.source]
    for source in move.unit.sources:
        readers[source] -= 1
    loads.loads[move.source] -= loads.added(move.unit, move.source)
    loads.put(move.unit, move.target)


def move_set(loads: Loads, moves: Sequence[UnitMove]) -> MoveSet:
    """Return moves between nodes of which the loads and readers are known.

    The unshared load of a unit is a source that it alone reads.
    """
    own = len(loads.rates)
    read = [
        [*move.unit.sources, *([own + at] if move.unit.load else [])]
        for at, move in enumerate(moves)
    ]
    rates = np.concatenate([loads.rates, [move.unit.load for move in moves]])
    leaving = [(move.source, s) for move, sources in zip(moves, read, strict=True) for s in sources]
    coming = [(move.target, s) for move, sources in zip(moves, read, strict=True) for s in sources]
    spots = {spot: number for number, spot in enumerate(dict.fromkeys([*leaving, *coming]))}
    alone = {spot for spot in leaving if spot[1] >= own}
    return MoveSet(
        loads.loads.copy(),
        loads.capacities,
        np.array([move.source for move in moves], np.int64),
        np.array([move.target for move in moves], np.int64),
        boundaries(np.array(list(map(len, read)), np.int64)),
        np.array([spots[spot] for spot in leaving], np.int64),
        np.array([spots[spot] for spot in coming], np.int64),
        rates[np.array([source for _, source in coming], np.int64)],
        np.array([loads.readers(*spot) + (spot in alone) for spot in spots], np.int64),
    )


def drawn(seed: int, nodes: int = 6, sources: int = 20, units: int = 60) -> Instance:
    """Draw an instance; every other one moves units between equally filled nodes."""
    random = np.random.default_rng(seed)
    capacities = random.choice([50.0, 100.0, 200.0], nodes)
    if seed % 3 == 0:
        capacities[:] = 100.0
    even = capacities / capacities.sum()
    here = random.choice(nodes, units, p=even if seed % 2 else random.dirichlet(np.ones(nodes)))
    there = random.permutation(here) if seed % 2 else random.choice(nodes, units, p=even)
    own = np.where(random.random(units) < 0.3, random.uniform(0, 8, units), 0.0).round(2)
    reads = [
        random.choice(sources, random.integers(0, 5), replace=False).tolist() for _ in range(units)
    ]
    return Instance(
        random.uniform(0.5, 10, sources).round(2).tolist(),
        capacities.tolist(),
        [WorkUnit(tuple(read), load) for read, load in zip(reads, own.tolist(), strict=True)],
        here.tolist(),
        there.tolist(),
    )


def in_rounds(instance: Instance) -> list[int]:
    """Return the order of the rule that Weir had before: rounds over all remaining moves.

    A round takes the moves by the load of their source at its beginning, and makes each that is
    safe; a round that makes none makes the one that does least harm.
    """
    loads, moves = instance.loads(), instance.moves()
    capacities = np.array(instance.capacities)
    start = (loads.loads / capacities).max()

    def share_after(at: int) -> float:
        move = moves[at]
        added = loads.added(move.unit, move.target)
        return float((loads.loads[move.target] + added) / capacities[move.target])

    def make(at: int) -> None:
        make_move(loads, moves[at])
        order.append(at)

    order: list[int] = []
    remaining = list(range(len(moves)))
    while remaining:
        shares = loads.loads / capacities
        left = []
        for at in sorted(remaining, key=lambda at: (-shares[moves[at].source], at)):
            if share_after(at) <= start + SLACK:
                make(at)
            else:
                left.append(at)
        if len(left) == len(remaining):
            least = min(left, key=lambda at: (share_after(at), at))
            make(least)
            left.remove(least)
        remaining = left
    return order
