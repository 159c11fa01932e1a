"""Simple_SSM, figure 2: the readable reference for optimal single-step migration, equal nodes.

Lemma 3.1 tries every split of a sub-problem ([alpha, beta), [gamma, delta), n_p) into two: the
tasks before x, the nodes up to y and n_l parts to the left, the rest to the right; y may be
before gamma, so that parts without a keeper can come first. Positions and nodes count from 0
here. Errors of the printed figure are repaired as in docs/papers.md. Of use for m up to
a dozen: O(m^3 n^3 n'^2) time.
"""

import math
from dataclasses import dataclass
from functools import cache

from algorithms.migration.limits import is_within


@dataclass(frozen=True)
class SimpleSSM:
    """One problem: `work` and `state` per task, `bounds` of the present nodes' intervals."""

    work: tuple[float, ...]
    state: tuple[float, ...]
    bounds: tuple[int, ...]
    limit: float
    parts: int

    def retained_bytes(self) -> float:
        """Return the most bytes that can stay, minus infinity if no partitioning is feasible."""

        @cache
        def gain(alpha: int, beta: int, gamma: int, delta: int, parts: int) -> float:
            if parts == 0:
                return 0.0 if alpha == beta else -math.inf
            if gamma == delta:
                return 0.0 if self._fit(alpha, beta, parts) else -math.inf
            if parts == 1:
                return self._kept_by_one(alpha, beta, gamma, delta)
            return max(
                gain(alpha, x, gamma, y + 1, left) + gain(x, beta, y + 1, delta, parts - left)
                for x in range(alpha, beta + 1)
                for y in range(gamma - 1, delta)
                for left in range(1, parts + 1)
                if (x, y + 1, left) != (beta, delta, parts)
            )

        return gain(0, len(self.work), 0, len(self.bounds) - 1, self.parts)

    def _kept_by_one(self, alpha: int, beta: int, gamma: int, delta: int) -> float:
        if not self._fit(alpha, beta, 1):
            return -math.inf
        return max(self._kept(alpha, beta, node) for node in range(gamma, delta))

    def _kept(self, alpha: int, beta: int, node: int) -> float:
        """Return the bytes of the tasks that are in [alpha, beta) and now on the node."""
        first, stop = max(alpha, self.bounds[node]), min(beta, self.bounds[node + 1])
        return math.fsum(self.state[first:stop])

    def _fit(self, alpha: int, beta: int, parts: int) -> bool:
        """Return whether so many intervals within the limit hold the tasks [alpha, beta)."""
        used, load = 1, 0.0
        for task in range(alpha, beta):
            load += self.work[task]
            if not is_within(load, self.limit):
                used, load = used + 1, self.work[task]
            if not is_within(load, self.limit):
                return False
        return used <= parts
