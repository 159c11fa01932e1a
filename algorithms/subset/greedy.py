"""Greedy subsets: the largest gain per cost, computed again as other moves are chosen.

One move alone often changes nothing: a node goes on receiving a source until its last reader has
left. So groups compete, too: all moves after which a node no longer receives a source.
"""

import heapq
import time
from collections.abc import Callable, Sequence

import numpy as np

from algorithms.subset.problem import SLACK, SubsetProblem
from algorithms.vocabulary import Floats

# A smooth stand-in for the largest of the shares: one move seldom lowers the largest of equals.
POWERS = (8, 2)
Potential = Callable[[Floats], float]


def potentials(problem: SubsetProblem) -> list[Potential]:
    """Return the potentials of greedy runs, functions of the nodes' shares of their capacities."""
    before = problem.loads(np.zeros(problem.count, np.bool_))
    scale = float((before / problem.capacities).max()) or 1.0

    def of_power(power: int) -> Potential:
        return lambda shares: float(((shares / scale) ** power).sum())

    def traffic(shares: Floats) -> float:
        return float((shares * problem.capacities).sum())

    return [*map(of_power, POWERS), traffic]


def groups_of(problem: SubsetProblem) -> list[tuple[int, ...]]:
    """Return each move alone, and all that leave a spot together."""
    together = (tuple(moves) for moves in problem.leaving if len(moves) > 1)
    single = ((move,) for move in range(problem.count))
    return list(dict.fromkeys([*single, *together]))


class GreedyRun:
    """A search of the moves that lower a potential most per cost.

    `heap` has the last computed gains of groups, the best first.
    """

    def __init__(self, problem: SubsetProblem, potential: Potential) -> None:
        self.problem, self.potential = problem, potential
        self.chosen = np.zeros(problem.count, np.bool_)
        self.counts = problem.readers.copy()
        self.loads = problem.loads(self.chosen)
        self.value = potential(self.loads / problem.capacities)
        self.left = problem.limits * (1 + SLACK) + SLACK
        self.groups = groups_of(problem)
        self.by_move: list[list[int]] = [[] for _ in range(problem.count)]
        for number, group in enumerate(self.groups):
            for move in group:
                self.by_move[move].append(number)
        self.signs_of: list[list[tuple[int, int]]] = [[] for _ in range(problem.count)]
        for sign, by_spot in ((-1, problem.leaving), (1, problem.coming)):
            for spot, moves in enumerate(by_spot):
                for move in moves:
                    self.signs_of[move].append((spot, sign))
        self.heap: list[tuple[float, int]] = []

    def run(self, until: float) -> np.ndarray:
        """Return the moves, bool[moves]; stop without budget, without gain, or at `until`.

        `until`: seconds of the monotonic clock.
        """
        self._push(range(len(self.groups)))
        while self.heap and time.monotonic() < until:
            _, number = heapq.heappop(self.heap)
            score = self._score(self.groups[number])
            if score is None or score >= 0:
                continue
            if self.heap and score > self.heap[0][0] + SLACK:
                heapq.heappush(self.heap, (score, number))
                continue
            self._take(self.groups[number])
        return self.chosen

    def _push(self, numbers: Sequence[int] | range) -> None:
        for number in numbers:
            score = self._score(self.groups[number])
            if score is not None and score < 0:
                heapq.heappush(self.heap, (score, number))

    def _score(self, group: Sequence[int]) -> float | None:
        """Return the change of the potential per cost; None beyond the budget."""
        moves = [move for move in group if not self.chosen[move]]
        if not moves:
            return None
        cost = self.problem.costs[moves].sum(axis=0)
        if (cost > self.left).any():
            return None
        shares = self._after(moves)[0] / self.problem.capacities
        # The tightest budget counts; a free move costs almost nothing.
        share = float((cost / np.maximum(self.problem.limits, SLACK)).max(initial=0.0))
        return (self.potential(shares) - self.value + 1e-12) / max(share, SLACK)

    def _after(self, moves: Sequence[int]) -> tuple[Floats, dict[int, int]]:
        """Return the loads after some more moves, and the readers of the spots that change."""
        problem, loads = self.problem, self.loads.copy()
        changed: dict[int, int] = {}
        for move in moves:
            for spot, sign in self.signs_of[move]:
                changed[spot] = changed.get(spot, int(self.counts[spot])) + sign
        for spot, count in changed.items():
            before = self.counts[spot] > 0
            if before != (count > 0):
                rate = problem.rates[spot]
                loads[problem.nodes[spot]] += -rate if before else rate
        return loads, changed

    def _take(self, group: Sequence[int]) -> None:
        moves = [move for move in group if not self.chosen[move]]
        self.loads, changed = self._after(moves)
        for spot, count in changed.items():
            self.counts[spot] = count
        self.value = self.potential(self.loads / self.problem.capacities)
        self.left = self.left - self.problem.costs[moves].sum(axis=0)
        self.chosen[moves] = True
        # Those that share a spot may gain more by now.
        near = {
            number
            for spot in changed
            for move in (*self.problem.leaving[spot], *self.problem.coming[spot])
            if not self.chosen[move]
            for number in self.by_move[move]
        }
        self._push(sorted(near))
