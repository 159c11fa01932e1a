"""The moves of a plan, their costs, the budget, and the value of a subset.

What a node receives depends on moves in one place only: a *spot*, a node and a source of which no
unit that stays reads it there. A spot receives its source while a unit that would leave is still
there, or one that comes has come. So any subset is measured by the moves' spots alone, whatever
number of units stays where it is.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from algorithms.balance import imbalance
from algorithms.errors import BadProblem
from algorithms.ordering import Loads, UnitMove, WorkUnit
from algorithms.vocabulary import Floats

# Sums of costs in another order differ in the last digits.
SLACK: Final = 1e-9


@dataclass(frozen=True, order=True, slots=True)
class Value:
    """The value of a subset; smaller is better.

    `excess`: by how many whole `EVEN` it is less balanced than the whole plan; `traffic`: records/s
    received by all nodes. `imbalance`: the largest load/capacity less the mean.
    """

    excess: int
    traffic: float
    imbalance: float


# Loads are measured, and differ by more than a hundredth of a capacity from minute to minute.
EVEN: Final = 0.01


class SubsetProblem:
    """Moves of units that each move once, and a budget.

    `rates`: records/s of each source; `capacities`: records/s of each node; `resident`: the units
    and the node of each before the moves, those that move among them; `costs` float64[moves,
    kinds]; `limits`: how much of each kind may be spent.
    """

    def __init__(
        self,
        rates: Sequence[float],
        capacities: Sequence[float],
        resident: Iterable[tuple[WorkUnit, int]],
        moves: Sequence[UnitMove],
        costs: Floats,
        limits: Sequence[float],
    ) -> None:
        self.moves = tuple(moves)
        self.costs = np.asarray(costs, np.float64).reshape(len(self.moves), len(limits))
        self.limits = np.array(limits, np.float64)
        if (self.costs < 0).any() or (self.limits < 0).any():
            raise BadProblem("costs", "must not be below 0, and neither must limits")
        self.capacities = np.array(capacities, np.float64)
        loads = Loads(rates, capacities, resident)
        self._find_spots(loads, [float(rate) for rate in rates])
        self.full = imbalance(self.loads(np.ones(len(self.moves), np.bool_)) / self.capacities)

    def _find_spots(self, loads: Loads, rates: Sequence[float]) -> None:
        leaving: dict[tuple[int, int], list[int]] = {}
        coming: dict[tuple[int, int], list[int]] = {}
        for index, move in enumerate(self.moves):
            for source in move.unit.sources:
                leaving.setdefault((move.source, source), []).append(index)
                coming.setdefault((move.target, source), []).append(index)
        self.spots = [
            spot
            for spot in dict.fromkeys([*leaving, *coming])
            if loads.readers(*spot) == len(leaving.get(spot, ()))
        ]
        self.leaving = [leaving.get(spot, []) for spot in self.spots]
        self.coming = [coming.get(spot, []) for spot in self.spots]
        self.nodes = np.array([node for node, _ in self.spots], np.int64)
        self.rates = np.array([rates[source] for _, source in self.spots], np.float64)
        self.readers = np.array([len(moves) for moves in self.leaving], np.int64)
        # The loads apart from the sources of the spots; the units' own loads are where they were.
        self.fixed = loads.loads.copy()
        np.subtract.at(self.fixed, self.nodes, self.rates * (self.readers > 0))
        self.own = np.array([move.unit.load for move in self.moves], np.float64)
        self.sources = np.array([move.source for move in self.moves], np.int64)
        self.targets = np.array([move.target for move in self.moves], np.int64)
        self.changes = self._changes()

    def _changes(self) -> csr_array:
        """Return by how much each move changes the readers of each spot, int64[spots, moves]."""
        rows, columns, values = [], [], []
        for sign, by_spot in ((-1, self.leaving), (1, self.coming)):
            for spot, moves in enumerate(by_spot):
                rows += [spot] * len(moves)
                columns += moves
                values += [sign] * len(moves)
        shape = (len(self.spots), len(self.moves))
        return csr_array((values, (rows, columns)), shape=shape, dtype=np.int64)

    def loads(self, chosen: np.ndarray) -> Floats:
        """Return the records/s of each node after the chosen moves (bool[moves])."""
        received = self.readers + self.changes @ chosen.astype(np.int64) > 0
        loads = self.fixed.copy()
        np.add.at(loads, self.nodes, self.rates * received)
        moved = self.own * chosen
        np.subtract.at(loads, self.sources, moved)
        np.add.at(loads, self.targets, moved)
        return loads

    def value(self, chosen: np.ndarray) -> Value:
        """Return the value of the chosen moves."""
        loads = self.loads(chosen)
        reached = imbalance(loads / self.capacities)
        # Rounded, so that the last digits of a sum decide nothing.
        excess = math.floor(round((reached - self.full) / EVEN, 6))
        return Value(max(0, excess), round(float(loads.sum()), 6), round(reached, 9))

    def affordable(self, chosen: np.ndarray) -> bool:
        """Return whether the chosen moves are within the budget."""
        spent = self.costs[chosen].sum(axis=0)
        return bool((spent <= self.limits * (1 + SLACK) + SLACK).all())
