"""Feasible input tables, what nodes send of them, and which rows may be left out.

docs/decisions/0043-rows-of-feasible-input-tables.md has the proofs.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol, Self

import numpy as np

from algorithms.compiled import compiled
from algorithms.vocabulary import Flags, Floats, Ints

_NUMBER_BYTES: Final = 8
# Weights of rows of a table: a mixture of their plans.
Weights = dict[int, float]


@dataclass(frozen=True, eq=False)
class Table:
    """What a node publishes of its subtree (section 6.1), in ascending order of rates.

    `rates` float64[n, e]: combinations of rates of the streams that enter it; `scores` float64[n]:
    weighted results beyond those that need no resource; `whole` bool[n]: True if no complementary
    local plan is needed, so that nothing is dropped in the subtree.
    """

    rates: Floats
    scores: Floats
    whole: Flags

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.scores)

    def take(self, rows: Ints | Flags) -> Self:
        """Return the table of some rows."""
        return type(self)(self.rates[rows], self.scores[rows], self.whole[rows])

    @cached_property
    def keys(self) -> list[bytes]:
        """Return the contents of each row, to compare tables."""
        columns = np.column_stack([self.rates, self.scores, self.whole])
        return [row.tobytes() for row in np.ascontiguousarray(columns + 0.0)]

    def equals(self, other: "Table") -> bool:
        """Return whether two tables have the same rows, bit by bit."""
        return self.rates.shape == other.rates.shape and self.keys == other.keys


class RowPlans(Protocol):
    """How a node and its children process the rows of its table; it stays on the node."""

    def flows(self, row: int) -> Floats:
        """Return the flows of the drop locations of the node, float64[d]."""

    def children(self, row: int) -> list[Weights | None]:
        """Return the mixture of rows of each child that the plan uses; None: it drops nothing."""


@dataclass(frozen=True, eq=False)
class Delta:
    """The difference of two tables: rows to remove, by number, and rows to insert.

    `removed` int64[k] counts in the old table, `places` int64[n] in the new one.
    """

    streams: int
    removed: Ints
    places: Ints
    rows: Table

    @classmethod
    def between(cls, old: Table, new: Table) -> "Delta":
        """Return what turns one table into another; only rows that differ."""
        old_keys, new_keys = set(old.keys), set(new.keys)
        removed = [row for row, key in enumerate(old.keys) if key not in new_keys]
        places = [row for row, key in enumerate(new.keys) if key not in old_keys]
        changed = np.array(places, np.int64)
        return cls(new.rates.shape[1], np.array(removed, np.int64), changed, new.take(changed))

    @property
    def is_empty(self) -> bool:
        """Return whether the tables are equal."""
        return not len(self.removed) and not len(self.places)

    @property
    def size(self) -> int:
        """Return the size in bytes: numbers of 8 bytes, a flag of one byte per inserted row."""
        row = (self.streams + 2) * _NUMBER_BYTES + 1
        return len(self.removed) * _NUMBER_BYTES + len(self.places) * row

    def apply(self, old: Table) -> Table:
        """Return the new table."""
        kept = np.ones(old.size, np.bool_)
        kept[self.removed] = False
        size = int(kept.sum()) + len(self.places)
        stays = np.ones(size, np.bool_)
        stays[self.places] = False
        result = Table(np.empty((size, self.streams)), np.empty(size), np.empty(size, np.bool_))
        for name in ("rates", "scores", "whole"):
            getattr(result, name)[stays] = getattr(old, name)[kept]
            getattr(result, name)[self.places] = getattr(self.rows, name)
        return result


def empty_table(streams: int) -> Table:
    """Return a table without rows."""
    return Table(np.zeros((0, streams)), np.zeros(0), np.zeros(0, np.bool_))


def ascending(rates: Floats, scores: Floats) -> Ints:
    """Return the numbers of the rows in ascending order of rates; of equal rates the best."""
    if not len(rates):
        return np.zeros(0, np.int64)
    order = np.lexsort((-scores, *rates.T[::-1]))
    differs = np.ones(len(order), np.bool_)
    differs[1:] = (rates[order[1:]] != rates[order[:-1]]).any(axis=1)
    return order[differs]


def is_needed(table: Table) -> Flags:
    """Return which rows the table of a whole network needs, bool[n]: the safe rule.

    A row is not needed if it is whole, and so is a row above it in every stream: an optimum of
    infeasible rates that rounds down to it would be below the other row, and could grow.
    """
    used = table.rates.max(axis=0, initial=0.0) > 0
    if not used.any():
        return np.ones(table.size, np.bool_)
    result = np.ones(table.size, np.bool_)
    rows = np.flatnonzero(table.whole)
    rates = table.rates[rows][:, used]
    levels = [np.unique(column) for column in rates.T]
    places = np.column_stack(
        [np.searchsorted(level, column) for level, column in zip(levels, rates.T, strict=True)]
    ) if len(rows) else np.zeros((0, int(used.sum())), np.int64)  # fmt: skip
    listed = set(map(bytes, np.ascontiguousarray(places)))
    has_above = [row.tobytes() in listed for row in np.ascontiguousarray(places + 1)]
    result[rows] = ~np.array(has_above, np.bool_)
    return result


def is_undominated(table: Table) -> Flags:
    """Return which rows no other row dominates, bool[n]: another safe rule, for any node.

    A row dominates another if its rates are at most as high and its score is at least as high.
    No two rows may have the same rates. Rows that are whole are not tested.
    """
    result = np.ones(table.size, np.bool_)
    candidates = np.flatnonzero(~table.whole)
    result[candidates] = _undominated(table.rates, table.scores, candidates)
    return result


@compiled
def _undominated(rates: Floats, scores: Floats, candidates: Ints) -> Flags:
    result = np.ones(len(candidates), np.bool_)
    for number, row in enumerate(candidates):
        for other in range(len(scores)):
            if other == row or scores[other] < scores[row]:
                continue
            below = True
            for stream in range(rates.shape[1]):
                if rates[other, stream] > rates[row, stream]:
                    below = False
                    break
            if below:
                result[number] = False
                break
    return result
