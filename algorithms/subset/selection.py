"""The best subset of a plan's moves within a budget: greedy, repaired, and checked by a program.

The mixed integer program also has a bound of all subsets. x: whether a move is made; y: whether a
spot receives its source, which is so if a unit that leaves it is still there (x = 0) or one that
comes has come (x = 1). Loads are sums of both. Solved in two rounds: the least excess over the
whole plan's imbalance, then the least traffic at that excess.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack

from algorithms.optimizers import linear_constraint, solve_milp
from algorithms.subset.greedy import GreedyRun, groups_of, potentials
from algorithms.subset.problem import EVEN, SubsetProblem, Value
from algorithms.vocabulary import Floats, Progress, silent

# So many seconds for the greedy runs, and for each of the exact program's two rounds: a person
# waits for the answer.
SECONDS: Final = 5.0
# Larger programs end without an answer in that time.
MAX_EXACT_MOVES: Final = 10_000
# Subsets within a thousandth of each other are equally good.
ALIKE: Final = 1e-3


@dataclass(frozen=True)
class ChosenMoves:
    """The chosen moves by position, ascending, and their value.

    `imbalance_bound`, `traffic_bound`: no subset within the budget is below, the second among
    those as balanced as this one; None where nothing is known. `proven`: whether none is better
    balanced by `EVEN`, or has a thousandth less traffic.
    """

    chosen: tuple[int, ...]
    value: Value
    imbalance_bound: float | None = None
    traffic_bound: float | None = None
    proven: bool = False


def choose(
    problem: SubsetProblem,
    progress: Progress = silent,
    seconds: float = SECONDS,
    *,
    exact: bool = True,
) -> ChosenMoves:
    """Return the best moves: as balanced as the whole plan if possible, then of least traffic.

    All of them where all can be afforded. Two subsets count as equally balanced within `EVEN` of
    a node's capacity. Moves that do not help are left out. Not `exact`: the greedy ones alone.
    """
    until = time.monotonic() + seconds
    every = np.ones(problem.count, np.bool_)
    if problem.affordable(every):
        return _choice(problem, every)
    best = _best(problem, _greedy_subsets(problem, progress, until), until)
    progress(0.5)
    if problem.count > MAX_EXACT_MOVES or not exact:
        return _choice(problem, best)
    return _improve(problem, best, progress, seconds)


def _greedy_subsets(
    problem: SubsetProblem, progress: Progress, until: float
) -> Iterable[np.ndarray]:
    yield np.zeros(problem.count, np.bool_)
    yield _prefix(problem)
    ways = potentials(problem)
    for number, potential in enumerate(ways, start=1):
        yield GreedyRun(problem, potential).run(until)
        progress(0.5 * number / len(ways))


def _prefix(problem: SubsetProblem) -> np.ndarray:
    """Return as many moves as the budget allows, in their order."""
    spent = problem.costs.cumsum(axis=0)
    return np.asarray((spent <= problem.limits).all(axis=1))


def _best(problem: SubsetProblem, subsets: Iterable[np.ndarray], until: float) -> np.ndarray:
    repaired = [_repair(problem, subset, until) for subset in subsets]
    return min(repaired, key=problem.value)


def _repair(problem: SubsetProblem, chosen: np.ndarray, until: float) -> np.ndarray:
    """Return the choice with the moves that still help, and without those that do not."""
    chosen = chosen.copy()
    value = problem.value(chosen)
    for group in groups_of(problem):
        if time.monotonic() > until:
            return chosen
        tried = chosen.copy()
        tried[list(group)] = True
        if problem.affordable(tried) and (now := problem.value(tried)) < value:
            chosen, value = tried, now
    return _prune(problem, chosen, value, until)


def _prune(problem: SubsetProblem, chosen: np.ndarray, value: Value, until: float) -> np.ndarray:
    """Return the choice without its useless moves; the costliest are tried first."""
    weights = problem.costs.sum(axis=1)
    for move in sorted(np.flatnonzero(chosen).tolist(), key=lambda move: -weights[move]):
        if time.monotonic() > until:
            break
        chosen[move] = False
        now = problem.value(chosen)
        if (now.excess, now.traffic) > (value.excess, value.traffic):
            chosen[move] = True
    return chosen


def _improve(
    problem: SubsetProblem, best: np.ndarray, progress: Progress, seconds: float
) -> ChosenMoves:
    value = problem.value(best)
    imbalance_bound, settled = problem.full, value.excess == 0
    if not settled:
        solved = least_excess(problem, seconds)
        if solved.chosen is not None and problem.affordable(solved.chosen):
            best = _best(problem, [best, solved.chosen], time.monotonic() + seconds)
            value = problem.value(best)
        if solved.bound is not None:
            imbalance_bound = problem.full + max(0.0, solved.bound)
        # No subset is a whole EVEN better: none counts as better balanced.
        settled = problem.full + value.excess * EVEN <= imbalance_bound + 1e-6
    progress(0.75)
    solved = least_traffic(problem, value.excess, seconds)
    if solved.chosen is not None and problem.affordable(solved.chosen):
        best = _best(problem, [best, solved.chosen], time.monotonic() + seconds)
    traffic = problem.value(best).traffic
    met = solved.bound is not None and traffic <= solved.bound * (1 + ALIKE)
    return replace(
        _choice(problem, best),
        imbalance_bound=imbalance_bound,
        traffic_bound=solved.bound,
        proven=settled and met,
    )


def _choice(problem: SubsetProblem, chosen: np.ndarray) -> ChosenMoves:
    return ChosenMoves(tuple(np.flatnonzero(chosen).tolist()), problem.value(chosen))


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
