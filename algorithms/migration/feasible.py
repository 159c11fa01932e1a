"""Whether the tasks fit on the target nodes, and the least tau at which they do."""

import numpy as np

from algorithms.compiled import compiled
from algorithms.errors import InfeasibleTau, TooLarge
from algorithms.migration.grades import grades_of, strides_of
from algorithms.migration.limits import TOLERANCE
from algorithms.migration.problem import MigrationProblem
from algorithms.vocabulary import Floats, Ints

# Counts of nodes by grade that may have to be tabled, times tasks + 1: 512 MiB of gains.
MOST_CELLS = 1 << 25


def require_feasible(problem: MigrationProblem) -> None:
    """Raise `InfeasibleTau` unless intervals within the limits hold all tasks.

    Raises `TooLarge` where nodes are of so many different capacities that it cannot be found out.
    """
    grades = grades_of(problem)
    cells = int(np.prod(grades.counts + 1.0)) * (problem.tasks + 1)
    if cells > MOST_CELLS:
        raise TooLarge(
            f"{problem.nodes} nodes of {len(grades.counts)} different capacities and "
            f"{problem.tasks} tasks make {cells:,} cases; at most {MOST_CELLS:,} can be tabled. "
            "Give nodes that differ little the same capacity"
        )
    if _largest_share(problem.work_before, grades.limits, grades.counts, 1.0 + TOLERANCE) is None:
        raise InfeasibleTau(problem.nodes, problem.tau, smallest_tau(problem))


def smallest_tau(problem: MigrationProblem) -> float:
    """Return the least tau at which some intervals keep the balance; it is attained.

    Bisection on a factor of all limits; each feasible factor is at once lowered to the
    largest one that its intervals need.
    """
    grades = grades_of(problem)
    parts = problem.work_before, grades.limits, grades.counts
    low, high = 0.0, 1.0
    while _largest_share(*parts, high) is None:
        low, high = high, 2 * high
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        needed = _largest_share(*parts, middle)
        if needed is None:
            low = middle
        else:
            high = min(middle, needed)
    return max(0.0, (1 + problem.tau) * high - 1)


@compiled
def _largest_share(
    work_before: Floats, limits: Floats, counts: Ints, factor: float
) -> float | None:
    """Return the largest load over limit of intervals within `factor` times the limits.

    Every count of nodes reaches as far as it can, and of equally far reaches the one with
    the smaller largest share is kept. None if all nodes together do not reach the end.
    """
    strides = strides_of(counts)
    total = strides[-1] * (counts[-1] + 1)
    reach, share = np.zeros(total, np.int64), np.zeros(total)
    tasks = len(work_before) - 1
    for used in range(1, total):
        share[used] = np.inf
        for grade in range(len(counts)):
            if used // strides[grade] % (counts[grade] + 1) == 0:
                continue
            first = reach[used - strides[grade]]
            allowed = work_before[first] + factor * limits[grade]
            x = np.searchsorted(work_before, allowed, side="right") - 1
            load = work_before[x] - work_before[first]
            need = load / limits[grade] if load > 0.0 else 0.0
            need = max(need, share[used - strides[grade]])
            if x > reach[used] or (x == reach[used] and need < share[used]):
                reach[used], share[used] = x, need
    if reach[total - 1] < tasks:
        return None
    return float(share[total - 1])
