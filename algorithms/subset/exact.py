"""The best subset as a mixed integer program, and a bound of all subsets.

x: whether a move is made; y: whether a spot receives its source, which is so if a unit that leaves
it is still there (x = 0) or one that comes has come (x = 1). Loads are sums of both. Solved in two
rounds: the least excess over the whole plan's imbalance, then the least traffic at that excess.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack

from algorithms.optimizers import linear_constraint, solve_milp
from algorithms.subset.problem import EVEN, SubsetProblem
from algorithms.vocabulary import Floats


@dataclass(frozen=True)
class Solved:
    """The best subset that was found, and a lower bound of all; None if unknown."""

    chosen: np.ndarray | None
    bound: float | None


def least_excess(problem: SubsetProblem, seconds: float) -> Solved:
    """Minimise by how much the subset is less balanced than the whole plan."""
    model = _Model(problem)
    objective = np.zeros(model.width + 1)
    objective[-1] = 1.0
    return model.solve(objective, model.balanced(problem.full, -1.0), seconds)


def least_traffic(problem: SubsetProblem, excess: int, seconds: float) -> Solved:
    """Minimise the records/s received, no more than so many `EVEN` less balanced than the plan."""
    model = _Model(problem)
    traffic = np.concatenate([np.zeros(problem.count), problem.rates, [0.0]])
    limit = problem.full + (excess + 1 - 1e-6) * EVEN
    solved = model.solve(traffic, model.balanced(limit, 0.0), seconds)
    bound = None if solved.bound is None else solved.bound + float(problem.fixed.sum())
    return Solved(solved.chosen, bound)


class _Model:
    """Columns: the moves, the spots, and the excess."""

    def __init__(self, problem: SubsetProblem) -> None:
        self.problem = problem
        self.width = problem.count + len(problem.nodes)

    def balanced(self, limit: float, excess: float) -> Any:
        """Return that no node is above the mean by more than the limit (and the excess)."""
        problem = self.problem
        nodes = len(problem.capacities)
        spots = np.arange(len(problem.nodes))
        received = csr_array((problem.rates, (problem.nodes, spots)), shape=(nodes, len(spots)))
        weights = received.toarray() / problem.capacities[:, None]
        shares = weights - weights.mean(axis=0)
        fixed = problem.fixed / problem.capacities
        moved = np.zeros((nodes, problem.count))
        whole = np.hstack([moved, shares, np.full((nodes, 1), excess)])
        return linear_constraint(csr_array(whole), -np.inf, limit - (fixed - fixed.mean()))

    def solve(self, objective: Floats, balanced: Any, seconds: float) -> Solved:
        moves, spots = self.problem.count, len(self.problem.nodes)
        whole = np.concatenate([np.ones(moves), np.zeros(spots + 1)])
        top = np.concatenate([np.ones(moves + spots), [np.inf]])
        result = solve_milp(
            objective,
            top,
            [balanced, *self._present(), self._budget()],
            integrality=whole,
            options={"time_limit": seconds},
        )
        chosen = None if result.x is None else result.x[:moves] > 0.5  # noqa: PLR2004 - of 0 and 1
        bound = getattr(result, "mip_dual_bound", None)
        return Solved(chosen, None if bound is None else float(bound))

    def _present(self) -> list[Any]:
        """Return that a spot receives its source exactly if a unit there reads it."""
        problem = self.problem
        change = problem.changes.tocoo()
        count = len(change.data)
        rows = np.arange(count)
        # A unit that comes: y >= x; one that leaves: y >= 1 - x.
        columns = np.concatenate([problem.count + change.row, change.col])
        values = np.concatenate([np.ones(count), -change.data.astype(np.float64)])
        each = csr_array((values, (np.tile(rows, 2), columns)), shape=(count, self.width + 1))
        least = np.where(change.data > 0, 0.0, 1.0)
        spots = len(problem.nodes)
        identity = eye_array(spots, format="csr")
        empty = csr_array((spots, 1))
        any_ = hstack([-problem.changes.astype(np.float64), identity, empty])
        return [
            linear_constraint(each, least, np.inf),
            linear_constraint(csr_array(any_), -np.inf, problem.readers.astype(np.float64)),
        ]

    def _budget(self) -> Any:
        costs = csr_array(self.problem.costs.T)
        empty = csr_array((len(self.problem.limits), self.width + 1 - self.problem.count))
        return linear_constraint(csr_array(hstack([costs, empty])), -np.inf, self.problem.limits)
