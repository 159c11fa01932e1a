"""Projected migration costs, exact: figure 6 over all partitionings, where they can be listed.

As printed, figure 6 adds up every P' with a chance M[P, P']; the matrix gives chances of numbers
of nodes only, and within a number the best P' is taken. What is minimised there is c + gamma C,
so that the sum is the cost of the policy and gamma = 0 is the single step.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from algorithms.errors import BadProblem
from algorithms.lab.migration.future.matching import costs_between
from algorithms.lab.migration.future.partitionings import MOST_PAIRS, partitionings
from algorithms.lab.migration.future.projection import Landscape
from algorithms.lab.migration.future.transitions import Transitions
from algorithms.vocabulary import Floats, Ints

# Values have converged when none changes by more than this share of all state.
_CONVERGED = 1e-9
_MOST_ROUNDS = 10_000


@dataclass(frozen=True, eq=False)
class ExactProjection:
    """The projected migration cost of every partitioning into each number of nodes.

    `cuts`: by row of the transitions int64[K, n + 1]; `values`: float64[K], bytes.
    """

    gamma: float
    cuts: Mapping[int, Ints]
    values: Mapping[int, Floats]

    def best(self, kept: Floats, present: Ints, row: int) -> tuple[Ints, float, float]:
        """Return the best partitioning for a number of nodes, its bytes now and its value.

        Minimises bytes moved now plus gamma times the projected cost, definition 4.1.
        """
        costs = costs_between(kept, present[None, :], self.cuts[row])[0]
        choice = int(np.argmin(costs + self.gamma * self.values[row]))
        return self.cuts[row][choice], float(costs[choice]), float(self.values[row][choice])


def project(landscape: Landscape) -> ExactProjection:
    """Compute the projected costs by value iteration.

    Raises `TooLarge` with the number of partitionings, and `BadProblem` for a gamma that does not
    converge.
    """
    gamma, kept, transitions = landscape.gamma, landscape.ground.kept, landscape.transitions
    if not 0 <= gamma < 1:
        raise BadProblem("gamma", f"must be at least 0 and less than 1, not {gamma}")
    cuts = _list_partitionings(landscape)
    costs = {
        (row, column): costs_between(kept, cuts[row], cuts[column])
        for row, column in np.argwhere(transitions.chances > 0).tolist()
    }
    values = {row: np.zeros(len(cuts[row])) for row in cuts}
    for _ in range(_MOST_ROUNDS):
        after = {row: _expected(row, costs, values, transitions, gamma) for row in values}
        change = max(float(np.abs(after[row] - values[row]).max()) for row in values)
        values = after
        if change <= _CONVERGED * max(1.0, float(kept[-1])):
            break
    return ExactProjection(gamma, cuts, values)


def _list_partitionings(landscape: Landscape) -> dict[int, Ints]:
    """Return all partitionings for each number of nodes. Raises `TooLarge`."""
    before, _, limits, counts, _, _ = landscape.ground
    most = int(np.sqrt(MOST_PAIRS / len(counts) ** 2))
    parts = enumerate(zip(limits.tolist(), counts.tolist(), strict=True))
    return {row: partitionings(before, limit, nodes, most) for row, (limit, nodes) in parts}


def _expected(
    row: int,
    costs: Mapping[tuple[int, int], Floats],
    values: Mapping[int, Floats],
    transitions: Transitions,
    gamma: float,
) -> Floats:
    """Return the expected cost from each partitioning of a row, one round deeper."""
    total = np.zeros(len(values[row]))
    for column in np.flatnonzero(transitions.chances[row]).tolist():
        least = (costs[row, column] + gamma * values[column][None, :]).min(axis=1)
        total += transitions.chances[row, column] * least
    return total
