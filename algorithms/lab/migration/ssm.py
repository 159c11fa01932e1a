"""SSM, figure 4 with its repairs: optimal single-step migration in O(m^2 n') time, equal nodes.

A state is a sub-problem of which only the left boundaries vary (lemma 3.2): the tasks from alpha
on, the nodes from gamma on, n_p parts; gamma is the node of task alpha or the one after it (lemma
3.3). To its left is cut off what one node N_y keeps, as long as the limit allows, with the fewest
parts for the tasks before it (lemma 3.4); N_y has task x - 1 or is the best of those before
(lemma 3.5). docs/papers.md lists the errors of the printed figure. `single_step.py` computes
the same in less time; Weir uses it.
"""

import numpy as np
from numpy.typing import NDArray

from algorithms.compiled import compiled
from algorithms.migration.limits import lower_bounds, owners_of
from algorithms.migration.single_step import FREE, Parts
from algorithms.vocabulary import Floats, Ints

# The best choice of a state: the end of P1, its node, the parts it takes.
_X, _Y, _PARTS = 0, 1, 2


@compiled
def ssm(work_before: Floats, state_before: Floats, bounds: Ints, limit: float, parts: int) -> Parts:
    """Return at most `parts` intervals within the limit of which the most stays in place.

    Arguments as for `single_step.best_parts`.
    """
    tasks = len(work_before) - 1
    lowest = lower_bounds(work_before, limit)
    owner = owners_of(bounds, tasks)
    gains = np.full((parts + 1, tasks + 1, 2), -np.inf)
    gains[:, tasks] = 0.0
    choices = np.full((parts + 1, tasks + 1, 2, 3), FREE, np.int64)
    for count in range(1, parts + 1):
        for alpha in range(tasks):
            for taken in range(2):
                _solve(alpha, taken, count, lowest, state_before, bounds, owner, gains, choices)
    return _trace(choices, lowest, owner, parts)


@compiled
def _solve(
    alpha: int,
    taken: int,
    count: int,
    lowest: Ints,
    kept: Floats,
    bounds: Ints,
    owner: Ints,
    gains: NDArray[np.float64],
    choices: NDArray[np.int64],
) -> None:
    """Find the best x and y for the tasks from alpha on; `taken`: alpha's node may keep nothing."""
    gamma = owner[alpha] + taken
    tasks = len(lowest) - 1
    least, started = 1, alpha
    for x in range(alpha + 1, tasks + 1):
        if lowest[x] > started:
            least, started = least + 1, x - 1
        if least > count or lowest[x] > started:
            return
        first = max(alpha, lowest[x])
        if x == tasks and gains[count, alpha, taken] < 0.0:
            gains[count, alpha, taken] = 0.0
            choices[count, alpha, taken] = (x, FREE, least)
        for y in (owner[x - 1], _best_before(first, x, gamma, kept, bounds, owner)):
            if y < gamma:
                continue
            stays = kept[min(x, bounds[y + 1])] - kept[max(first, bounds[y])]
            rest = gains[count - least, x, int(y == owner[x])]
            if stays + rest > gains[count, alpha, taken]:
                gains[count, alpha, taken] = stays + rest
                choices[count, alpha, taken] = (x, y, least)


@compiled
def _best_before(first: int, x: int, gamma: int, kept: Floats, bounds: Ints, owner: Ints) -> int:
    """Return the node before that of task x - 1 which keeps most of [first, x), `FREE` if none."""
    best, most = FREE, 0.0
    for node in range(max(gamma, owner[first]), owner[x - 1]):
        stays = kept[bounds[node + 1]] - kept[max(first, bounds[node])]
        if stays > most:
            best, most = node, stays
    return best


@compiled
def _trace(choices: NDArray[np.int64], lowest: Ints, owner: Ints, parts: int) -> Parts:
    """Follow the choices from the whole problem on; tasks before a kept part are cut greedily."""
    rows = np.empty((parts, 3), np.int64)
    count, alpha, taken, left = 0, 0, 0, parts
    while alpha < len(lowest) - 1:
        x, y, used = choices[left, alpha, taken]
        first, started = max(alpha, lowest[x]), alpha
        while started < first:
            stop = started
            while stop < first and lowest[stop + 1] <= started:
                stop += 1
            rows[count] = (started, stop, FREE)
            count, started = count + 1, stop
        rows[count] = (first, x, y)
        count, left, alpha, taken = count + 1, left - used, x, int(y == owner[x])
    rows = rows[:count]
    return Parts(rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy(), np.zeros(count, np.int64))
