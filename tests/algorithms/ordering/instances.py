"""Random moves, a certificate of their order, and the plain greedy rule to compare with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.ordering import SLACK, Loads, MoveSet, Order, UnitMove, WorkUnit, order_moves
from algorithms.rows import boundaries


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
    """Return moves between nodes of which the loads and readers are known."""
    leaving = [(move.source, source) for move in moves for source in move.unit.sources]
    coming = [(move.target, source) for move in moves for source in move.unit.sources]
    spots = {spot: number for number, spot in enumerate(dict.fromkeys([*leaving, *coming]))}
    return MoveSet(
        loads.loads.copy(),
        loads.capacities,
        np.array([move.source for move in moves], np.int64),
        np.array([move.target for move in moves], np.int64),
        np.array([move.unit.load for move in moves], np.float64),
        boundaries(np.array([len(move.unit.sources) for move in moves], np.int64)),
        np.array([spots[spot] for spot in leaving], np.int64),
        np.array([spots[spot] for spot in coming], np.int64),
        loads.rates[np.array([source for _, source in coming], np.int64)],
        np.array([loads.readers(*spot) for spot in spots], np.int64),
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
