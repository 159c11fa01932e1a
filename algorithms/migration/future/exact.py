"""Projected migration costs, exact: figure 6 over all partitionings, where they can be listed.

As printed, figure 6 adds up every P' with a chance M[P, P']; the matrix gives chances of numbers
of nodes only, and within a number the best P' is taken. What is minimised there is c + gamma C,
so that the sum is what the policy will pay and gamma = 0 is the single step.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from algorithms.errors import BadProblem
from algorithms.migration.future.matching import costs_between
from algorithms.migration.future.partitionings import partitionings
from algorithms.migration.future.transitions import Transitions
from algorithms.vocabulary import Floats, Ints, Progress

# Pairs of partitionings whose costs are kept: 400 MB.
MOST_PAIRS = 50_000_000
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


def project(
    work_before: Floats,
    kept: Floats,
    tau: float,
    transitions: Transitions,
    gamma: float,
    progress: Progress | None = None,
) -> ExactProjection:
    """Compute the projected costs by value iteration.

    `work_before`, `kept` float64[m + 1]. Raises `TooLarge` with the number of partitionings, and
    `BadProblem` for a gamma that does not converge.
    """
    if not 0 <= gamma < 1:
        raise BadProblem("gamma", f"must be at least 0 and less than 1, not {gamma}")
    cuts = listed(work_before, tau, transitions)
    costs = _costs(kept, cuts, transitions)
    values = {row: np.zeros(len(cuts[row])) for row in cuts}
    for done in range(_MOST_ROUNDS):
        after = {row: _expected(row, costs, values, transitions, gamma) for row in values}
        change = max(float(np.abs(after[row] - values[row]).max()) for row in values)
        values = after
        if progress is not None:
            progress(min(0.99, done * (1 - gamma) / 20))
        if change <= _CONVERGED * max(1.0, float(kept[-1])):
            break
    if progress is not None:
        progress(1.0)
    return ExactProjection(gamma, cuts, values)


def listed(work_before: Floats, tau: float, transitions: Transitions) -> dict[int, Ints]:
    """Return all partitionings for each number of nodes. Raises `TooLarge`."""
    most = int(np.sqrt(MOST_PAIRS / len(transitions.counts) ** 2))
    total = float(work_before[-1])
    return {
        row: partitionings(work_before, (1 + tau) * total / nodes, nodes, most)
        for row, nodes in enumerate(transitions.counts.tolist())
    }


def _costs(
    kept: Floats, cuts: Mapping[int, Ints], transitions: Transitions
) -> dict[tuple[int, int], Floats]:
    return {
        (row, column): costs_between(kept, cuts[row], cuts[column])
        for row, column in np.argwhere(transitions.chances > 0).tolist()
    }


def _expected(
    row: int,
    costs: Mapping[tuple[int, int], Floats],
    values: Mapping[int, Floats],
    transitions: Transitions,
    gamma: float,
) -> Floats:
    """Return what is to be paid from each partitioning of a row on, one round deeper."""
    total = np.zeros(len(values[row]))
    for column in np.flatnonzero(transitions.chances[row]).tolist():
        least = (costs[row, column] + gamma * values[column][None, :]).min(axis=1)
        total += transitions.chances[row, column] * least
    return total
