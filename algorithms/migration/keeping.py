"""From kept parts to nodes: parts that nobody keeps go to nodes that have none."""

from collections.abc import Iterable

import numpy as np

from algorithms.migration.grades import LEAVING, Grades
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.single_step import FREE, Parts
from algorithms.vocabulary import SmallInts


def grades_of(problem: MigrationProblem) -> Grades:
    """Return the problem's nodes by grade: equal nodes are one grade, whoever leaves."""
    capacities, limits = problem.capacities, problem.limits
    if problem.equal_nodes:
        alike = np.zeros(problem.present, np.int64)
        return Grades(alike, limits[:1].copy(), np.array([problem.nodes]))
    speeds, grade_of, counts = np.unique(
        capacities[capacities > 0], return_inverse=True, return_counts=True
    )
    grades = np.full(len(capacities), LEAVING)
    grades[capacities > 0] = grade_of
    each = np.array([limits[capacities == speed][0] for speed in speeds])
    return Grades(grades[: problem.present].copy(), each, counts.astype(np.int64))


def assigned(problem: MigrationProblem, parts: Parts) -> tuple[SmallInts, list[int]]:
    """Return the node of each task, int32[m], and the target nodes.

    A part without a keeper goes to the lowest node of its grade that has no part. Where equal
    nodes leave, they are the last ones of those that have none.
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


def _nodes_by_grade(problem: MigrationProblem, taken: Iterable[int]) -> dict[int, list[int]]:
    """Return the nodes without a part by grade, lowest first."""
    if problem.equal_nodes:
        grades = np.zeros(len(problem.capacities), np.int64)
    else:
        positive = problem.capacities > 0
        grades = np.full(len(problem.capacities), LEAVING)
        grades[positive] = np.unique(problem.capacities[positive], return_inverse=True)[1]
    free = {int(grade): [] for grade in np.unique(grades)}  # type: dict[int, list[int]]
    for node in sorted(set(range(len(grades))) - set(taken)):
        free[int(grades[node])].append(node)
    free.pop(LEAVING, None)
    return free
