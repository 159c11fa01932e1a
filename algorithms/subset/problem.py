"""The moves of a plan, their costs, the budget, and the value of a subset.

What a node receives depends on moves in one place only: a *spot*, a node and a source of which no
unit that stays reads it there. A spot receives its source while a unit that would leave is still
there, or one that comes has come. So any subset is measured by the moves' spots alone, whatever
number of units stays where it is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from algorithms.balance import imbalance
from algorithms.errors import BadProblem
from algorithms.ordering import MoveSet
from algorithms.rows import group_positions
from algorithms.vocabulary import Floats, Ints

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

    `costs` float64[moves, kinds]; `limits`: how much of each kind may be spent. Spots have numbers
    of their own: `nodes`, `rates`, `readers` are theirs; `leaving`, `coming`: the moves that leave
    each and come to it. `changes` int64[spots, moves]: the change of the readers of each by each.
    """

    def __init__(self, moves: MoveSet, costs: Floats, limits: Sequence[float]) -> None:
        self.count = len(moves.targets)
        self.costs = np.asarray(costs, np.float64).reshape(self.count, len(limits))
        self.limits = np.array(limits, np.float64)
        if (self.costs < 0).any() or (self.limits < 0).any():
            raise BadProblem("costs", "must not be below 0, and neither must limits")
        self.capacities = moves.capacities
        self._find_spots(moves)
        # The loads apart from the sources of the spots.
        self.fixed = moves.loads.copy()
        np.subtract.at(self.fixed, self.nodes, self.rates * (self.readers > 0))
        self.full = imbalance(self.loads(np.ones(self.count, np.bool_)) / self.capacities)

    def _find_spots(self, moves: MoveSet) -> None:
        left = np.bincount(moves.leaving, minlength=len(moves.readers))
        touched = np.concatenate([moves.leaving, moves.coming])
        owners = np.tile(np.repeat(np.arange(self.count), np.diff(moves.indptr)), 2)
        signs = np.repeat([-1, 1], len(moves.leaving))
        is_spot = (moves.readers == left)[touched]
        spots, first, rows = np.unique(touched[is_spot], return_index=True, return_inverse=True)
        columns = owners[is_spot]
        ends = np.where(signs < 0, moves.sources[owners], moves.targets[owners])
        self.nodes: Ints = ends[is_spot][first]
        self.rates: Floats = np.tile(moves.rates, 2)[is_spot][first]
        self.readers = left[spots]
        self.changes = csr_array(
            (signs[is_spot], (rows, columns)), shape=(len(spots), self.count), dtype=np.int64
        )
        self.leaving, self.coming = (
            _by_spot(rows[chosen], columns[chosen], len(spots))
            for chosen in (signs[is_spot] < 0, signs[is_spot] > 0)
        )

    def loads(self, chosen: np.ndarray) -> Floats:
        """Return the records/s of each node after the chosen moves (bool[moves])."""
        received = self.readers + self.changes @ chosen.astype(np.int64) > 0
        loads = self.fixed.copy()
        np.add.at(loads, self.nodes, self.rates * received)
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


def _by_spot(spots: Ints, moves: Ints, count: int) -> list[list[int]]:
    begins, order = group_positions(spots, count)
    return [moves[order[first:stop]].tolist() for first, stop in pairwise(begins.tolist())]
