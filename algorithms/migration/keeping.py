"""From kept parts to nodes: parts without a keeper go to nodes without a part."""

from collections.abc import Collection

import numpy as np

from algorithms.migration.grades import LEAVING, Grades
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.single_step import FREE, Parts
from algorithms.vocabulary import Ints, SmallInts


def grades_of(problem: MigrationProblem) -> Grades:
    """Return the problem's nodes by grade: equal nodes are one grade, whichever leaves."""
    grades = _grade_of_each(problem)
    staying = grades != LEAVING
    _, firsts, counts = np.unique(grades[staying], return_index=True, return_counts=True)
    if problem.equal_nodes:
        counts = np.array([problem.nodes])
    limits = problem.limits[staying][firsts]
    return Grades(grades[: problem.present].copy(), limits, counts.astype(np.int64))


def assigned(problem: MigrationProblem, parts: Parts) -> tuple[SmallInts, list[int]]:
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
    grades = _grade_of_each(problem).tolist()
    free: dict[int, list[int]] = {grade: [] for grade in sorted({*grades} - {LEAVING})}
    for node, grade in enumerate(grades):
        if grade != LEAVING and node not in taken:
            free[grade].append(node)
    return free


def _grade_of_each(problem: MigrationProblem) -> Ints:
    """Return the grade of each node, by its capacity; `LEAVING` for one that must leave."""
    positive = problem.capacities > 0
    grades = np.full(len(positive), LEAVING)
    grades[positive] = np.unique(problem.capacities[positive], return_inverse=True)[1]
    return grades
