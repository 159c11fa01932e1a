"""How the number of nodes changes, section 4.2: the migration transition matrix."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.checks import amounts, as_integers
from algorithms.compiled import compiled
from algorithms.errors import BadProblem
from algorithms.random_numbers import Words, unit
from algorithms.vocabulary import Floats, Ints

# Rows of given probabilities may miss 1 by as much: they are often written with few digits.
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Transitions:
    """The probability of each next number of nodes, the migration transition matrix (MTM).

    `counts` int64[c]: the numbers of nodes that occur, ascending. `chances` float64[c, c]: row by
    present, column by next number; each row sums to 1.
    """

    counts: Ints
    chances: Floats

    @classmethod
    def from_history(cls, nodes: Iterable[int], also: Iterable[int] = ()) -> "Transitions":
        """Count the changes in a history of node numbers; a repetition is not a migration.

        From a number that was never left, `also` those that may occur although the history has
        them not, each target is as likely as it was common. Raises `BadProblem`.
        """
        history = as_integers("history", list(nodes))
        if len(history) and history.min() < 1:
            raise BadProblem("history", "holds a number of nodes below 1")
        changes = history[np.concatenate([[True], np.diff(history) != 0])] if len(history) else []
        if len(changes) < 2:  # noqa: PLR2004 - one number makes no change
            raise BadProblem("history", "must hold at least one change of the number of nodes")
        counts = np.union1d(changes, np.array(list(also), np.int64))
        positions = np.searchsorted(counts, changes)
        seen = np.zeros((len(counts), len(counts)))
        np.add.at(seen, (positions[:-1], positions[1:]), 1.0)
        never_left = seen.sum(axis=1) == 0
        seen[never_left] = seen.sum(axis=0)
        return cls(counts, seen / seen.sum(axis=1, keepdims=True))

    @classmethod
    def from_matrix(cls, matrix: Mapping[Any, Mapping[Any, float]]) -> "Transitions":
        """Build from probabilities by present and next number of nodes. Raises `BadProblem`."""
        numbers = {_number(name) for name in matrix}
        numbers |= {_number(name) for row in matrix.values() for name in row}
        counts = np.array(sorted(numbers), np.int64)
        chances = np.zeros((len(counts), len(counts)))
        for name, row in matrix.items():
            row_number = int(np.searchsorted(counts, _number(name)))
            to = np.searchsorted(counts, [_number(other) for other in row])
            chances[row_number, to] = amounts(f"matrix.{name}", list(row.values()))
        wrong = np.flatnonzero(np.abs(chances.sum(axis=1) - 1) > _TOLERANCE)
        if not len(counts) or len(wrong):
            where = f"matrix.{counts[wrong[0]]}" if len(wrong) else "matrix"
            raise BadProblem(where, "must hold chances that sum to 1")
        return cls(counts, chances / chances.sum(axis=1, keepdims=True))

    def position(self, nodes: int) -> int:
        """Return the row of a number of nodes. Raises `BadProblem` if it never occurs."""
        row = int(np.searchsorted(self.counts, nodes))
        if row == len(self.counts) or self.counts[row] != nodes:
            known = f"{self.counts[0]} to {self.counts[-1]}"
            raise BadProblem("nodes", f"{nodes} nodes do not occur in the transitions ({known})")
        return row

    @property
    def totals(self) -> Floats:
        """Cumulative probabilities of each row, float64[c, c]; `futures` draws from them."""
        return np.cumsum(self.chances, axis=1)


def _number(name: Any) -> int:
    try:
        number = int(name)
    except (TypeError, ValueError) as error:
        raise BadProblem("matrix", f"{name!r} is not a number of nodes") from error
    if number < 1:
        raise BadProblem("matrix", f"a number of nodes must be at least 1, not {number}")
    return number


@compiled
def futures(totals: Floats, start: int, paths: int, steps: int, state: Words) -> Ints:
    """Draw sequences of rows that follow row `start`, int64[paths, steps]."""
    drawn = np.empty((paths, steps), np.int64)
    last = totals.shape[1] - 1
    for path in range(paths):
        row = start
        for step in range(steps):
            row = min(np.searchsorted(totals[row], unit(state), side="right"), last)
            drawn[path, step] = row
    return drawn
