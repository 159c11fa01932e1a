"""Optimal single-step migration, section 3: the least bytes moved, also on unequal nodes.

What SSM (figure 4) computes in O(m^2 n') is computed here in O(n' (m + (1 + tau) m n / n')). As
in lemma 3.1, nodes that keep anything keep their order, so one pass over the positions decides
everything; g[k, u, x] is the most that can stay where it is when at most k intervals hold the
tasks before x, and where u = 0 the node that has task x must still be without an interval. An
interval [l, x) stays with the node of its last task, with that of its first one, with a whole one
in between, or with none; over l each of the four is the largest value in a sliding window.

Nodes of equal capacity form a grade. With several grades k is one count per grade, and the number
of such counts, not of tasks or nodes, is what makes a problem large.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.migration.feasible import require_feasible
from algorithms.migration.grades import (
    LEAVING,
    Grades,
    farthest_reaches,
    grade_of_each,
    grades_of,
    strides_of,
)
from algorithms.migration.limits import lower_bounds
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.result import MigrationPlan, measure_assignment
from algorithms.vocabulary import Floats, Ints, Parameters, Progress, SmallInts, silent

_NEVER = -np.inf
# A part that no present node keeps anything of.
FREE = -1


class Parts(NamedTuple):
    """A partitioning of the tasks and each part's keeper; in position order, none empty.

    `firsts`, `stops` int64[p]; `keepers` int64[p]: a present node, or `FREE`; `grades`
    int64[p] of the node that may have it.
    """

    firsts: Ints
    stops: Ints
    keepers: Ints
    grades: Ints


@dataclass(frozen=True)
class SingleStep(Parameters):
    """The fewest bytes moved now, section 3: optimal over all intervals and all nodes."""

    def solve(self, problem: MigrationProblem, progress: Progress = silent) -> MigrationPlan:
        """Plan one migration. Raises `InfeasibleTau`, which names the smallest feasible tau."""
        require_feasible(problem)
        before = problem.work_before, problem.state_before, problem.bounds
        plan = measure_assignment(
            problem, lambda: assign_parts(problem, best_parts(*before, grades_of(problem)))
        )
        progress(1.0)
        return replace(plan, lower_bound=plan.cost)


def assign_parts(problem: MigrationProblem, parts: Parts) -> tuple[SmallInts, list[int]]:
    """Return the node of each task, int32[m], and the target nodes.

    A part without a keeper goes to the lowest node of its grade that has no part. Where equal
    nodes leave, they are the last ones without a part.
    """
    keepers = set(parts.keepers.tolist()) - {FREE}
    waiting = _nodes_by_grade(problem, keepers)
    assignment = np.empty(problem.tasks, np.int32)
    nodes = []
    for first, stop, keeper, grade in zip(*(part.tolist() for part in parts), strict=True):
        node = keeper if keeper != FREE else waiting[grade].pop(0)
        assignment[first:stop] = node
        nodes.append(node)
    idle = sorted(node for row in waiting.values() for node in row)
    return assignment, nodes + idle[: problem.nodes - len(nodes)]


def _nodes_by_grade(problem: MigrationProblem, taken: Collection[int]) -> dict[int, list[int]]:
    """Return the nodes without a part by grade, lowest first."""
    grades = grade_of_each(problem).tolist()
    free: dict[int, list[int]] = {grade: [] for grade in sorted({*grades} - {LEAVING})}
    for node, grade in enumerate(grades):
        if grade != LEAVING and node not in taken:
            free[grade].append(node)
    return free


@compiled
def best_parts(work_before: Floats, state_before: Floats, bounds: Ints, grades: Grades) -> Parts:
    """Return the intervals within their nodes' limits of which the most stays in place.

    `work_before`, `state_before` float64[m + 1]; `bounds` int64[n + 1] of the present intervals.
    There must be a partitioning within the limits.
    """
    lowest = np.empty((len(grades.limits), len(work_before)), np.int64)
    for grade in range(len(grades.limits)):
        lowest[grade] = lower_bounds(work_before, grades.limits[grade])
    gains = _gains(lowest, state_before, bounds, grades)
    return _trace(gains, lowest, state_before, bounds, grades)


@compiled
def _gains(lowest: Ints, kept: Floats, bounds: Ints, grades: Grades) -> Floats:
    """Return g, float64[K, 2, m + 1]; minus infinity where nothing is feasible or useful."""
    tasks = lowest.shape[1] - 1
    strides = strides_of(grades.counts)
    farthest, earliest = farthest_reaches(lowest, grades.counts, strides)
    gains = np.full((len(farthest), 2, tasks + 1), _NEVER)
    gains[0, :, 0] = 0.0
    room = np.empty((6, tasks + 1))
    for used in range(1, len(gains)):
        for grade in range(len(strides)):
            if used // strides[grade] % (grades.counts[grade] + 1) == 0:
                continue
            old, new = gains[used - strides[grade]], gains[used]
            np.maximum(new, old, new)
            room[0] = old[0] - kept
            first, last = earliest[len(gains) - 1 - used], farthest[used]
            for node in range(len(bounds) - 1):
                start, stop = bounds[node], bounds[node + 1]
                if start < stop and start < last and stop >= first:
                    _look_back(old, lowest[grade], kept, bounds, grades.grade_of, grade, node, room)
                    _extend(
                        old,
                        new,
                        lowest[grade],
                        kept,
                        start,
                        stop,
                        grades.grade_of[node] == grade,
                        room,
                    )
    return gains


@compiled
def _look_back(
    old: Floats,
    lowest: Ints,
    kept: Floats,
    bounds: Ints,
    grade_of: Ints,
    grade: int,
    node: int,
    room: Floats,
) -> None:
    """Find the best beginnings in earlier nodes' intervals, from this node's first task down.

    `room[1, l]`: the most kept before any beginning from l on; `room[2, l]`: the same with what
    the part that begins there keeps on an earlier node.
    """
    start = bounds[node]
    whole, earlier = 0.0, node
    bare, keeping = _NEVER, _NEVER
    for low in range(start, lowest[start + 1] - 1, -1):
        while bounds[earlier] > low:
            if earlier < node and grade_of[earlier] == grade:
                whole = max(whole, kept[bounds[earlier + 1]] - kept[bounds[earlier]])
            earlier -= 1
        bare = max(bare, old[1, low])
        keeping = max(keeping, old[1, low] + whole)
        if low < start and grade_of[earlier] == grade:
            keeping = max(keeping, old[0, low] + (kept[bounds[earlier + 1]] - kept[low]))
        room[1, low], room[2, low] = bare, keeping


@compiled
def _extend(
    old: Floats,
    new: Floats,
    lowest: Ints,
    kept: Floats,
    start: int,
    stop: int,
    may_keep: bool,
    room: Floats,
) -> None:
    """Let one more part end at each position in a node's interval [start, stop)."""
    _window_maxima(old[0], lowest, start, stop, room[3])
    _window_maxima(old[1], lowest, start, stop, room[4])
    _window_maxima(room[0], lowest, start, stop, room[5])
    for x in range(start + 1, stop + 1):
        low = lowest[x]
        without, with_node = room[3, x], room[4, x]
        if may_keep:
            with_node = max(with_node, room[5, x] + kept[x])
        if low <= start:
            without = max(without, room[2, low])
            if may_keep:
                with_node = max(with_node, room[1, low] + (kept[x] - kept[start]))
        with_node = max(with_node, without)
        new[0, x] = max(new[0, x], with_node if x == stop else without)
        new[1, x] = max(new[1, x], with_node)


@compiled
def _window_maxima(values: Floats, lowest: Ints, start: int, stop: int, maxima: Floats) -> None:
    """Write the largest value of the beginnings inside the interval for each end x in it.

    `queue` holds the beginnings that may still become the largest, falling in value.
    """
    queue = np.empty(stop - start, np.int64)
    head, tail = 0, 0
    maxima[start + 1] = _NEVER
    for x in range(start + 2, stop + 1):
        while tail > head and values[queue[tail - 1]] <= values[x - 1]:
            tail -= 1
        queue[tail] = x - 1
        tail += 1
        while head < tail and queue[head] < lowest[x]:
            head += 1
        maxima[x] = values[queue[head]] if head < tail else _NEVER


@compiled
def _trace(gains: Floats, lowest: Ints, kept: Floats, bounds: Ints, grades: Grades) -> Parts:
    """Go back from the best value by the choices that gave it."""
    strides = strides_of(grades.counts)
    parts = np.empty((int(grades.counts.sum()), 4), np.int64)
    count, used, spent = 0, len(gains) - 1, 1
    x, node = lowest.shape[1] - 1, len(bounds) - 2
    while x > 0:
        while bounds[node] >= x:
            node -= 1
        best, chosen = _NEVER, (-1, FREE, 1, -1)
        for grade in range(len(strides)):
            if used // strides[grade] % (grades.counts[grade] + 1) == 0:
                continue
            old = gains[used - strides[grade]]
            if old[spent, x] == gains[used, spent, x]:
                chosen = (x, FREE, spent, grade)
                break
            open_here = spent == 1 or bounds[node + 1] == x
            value, low, keeper, spent_before = _beginning(
                old, lowest[grade], kept, bounds, grades.grade_of, grade, node, x, open_here
            )
            if value > best:
                best, chosen = value, (low, keeper, spent_before, grade)
        low, keeper, spent, grade = chosen
        used -= strides[grade]
        if low < x:
            parts[count] = (low, x, keeper, grade)
            count, x = count + 1, low
    order = parts[:count][::-1]
    return Parts(order[:, 0].copy(), order[:, 1].copy(), order[:, 2].copy(), order[:, 3].copy())


@compiled
def _beginning(
    old: Floats,
    lowest: Ints,
    kept: Floats,
    bounds: Ints,
    grade_of: Ints,
    grade: int,
    node: int,
    x: int,
    open_here: bool,
) -> tuple[float, int, int, int]:
    """Return the best part that ends at x: its value, where it begins, its keeper, g's u there.

    `open_here`: nothing is lost when the node of task x - 1 is without an interval afterwards.
    """
    best, low, keeper, spent = _NEVER, -1, FREE, 1
    whole, earlier, largest = 0.0, node, FREE
    for first in range(x - 1, lowest[x] - 1, -1):
        while bounds[earlier] > first:
            size = kept[bounds[earlier + 1]] - kept[bounds[earlier]]
            if earlier < node and grade_of[earlier] == grade and size > whole:
                whole, largest = size, earlier
            earlier -= 1
        stop = min(x, bounds[earlier + 1])
        own = earlier < node or open_here
        choices = (
            (old[0, first] + (kept[stop] - kept[first]), earlier, 0, own),
            (old[1, first] + (kept[x] - kept[bounds[node]]), node, 1, earlier < node and open_here),
            (old[1, first] + whole, largest, 1, own or first == bounds[node]),
            (old[0, first], FREE, 0, True),
        )
        for value, who, before, allowed in choices:
            eligible = who == FREE or grade_of[who] == grade
            if allowed and eligible and value > best:
                best, low, keeper, spent = value, first, who, before
    return best, low, keeper, spent
