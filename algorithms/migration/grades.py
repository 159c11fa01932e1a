"""Grades: nodes of equal capacity. How many nodes of each grade are used is one number."""

from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.migration.problem import MigrationProblem
from algorithms.vocabulary import Floats, Ints

# The grade of a node that must leave.
LEAVING = -1


class Grades(NamedTuple):
    """Target nodes by grade, g of them.

    `grade_of` int64[n]: of each present node, `LEAVING` where it may keep nothing. `limits`
    float64[g]: most work of a node. `counts` int64[g]: target nodes.
    """

    grade_of: Ints
    limits: Floats
    counts: Ints


def grades_of(problem: MigrationProblem) -> Grades:
    """Return the problem's nodes by grade: equal nodes are one grade, whichever leaves."""
    grades = grade_of_each(problem)
    staying = grades != LEAVING
    _, firsts, counts = np.unique(grades[staying], return_index=True, return_counts=True)
    if problem.equal_nodes:
        counts = np.array([problem.nodes])
    limits = problem.limits[staying][firsts]
    return Grades(grades[: problem.present].copy(), limits, counts.astype(np.int64))


def grade_of_each(problem: MigrationProblem) -> Ints:
    """Return the grade of each node, by its capacity; `LEAVING` for one that must leave."""
    positive = problem.capacities > 0
    grades = np.full(len(positive), LEAVING)
    grades[positive] = np.unique(problem.capacities[positive], return_inverse=True)[1]
    return grades


@compiled
def strides_of(counts: Ints) -> Ints:
    """Return by how much one more node of a grade raises the number of a count, int64[g].

    All counts from none to `counts` are numbered, mixed radix; the last number is `counts`.
    """
    strides = np.ones(len(counts), np.int64)
    for grade in range(1, len(counts)):
        strides[grade] = strides[grade - 1] * (counts[grade - 1] + 1)
    return strides


@compiled
def farthest_reaches(lowest: Ints, counts: Ints, strides: Ints) -> tuple[Ints, Ints]:
    """Return how far each count of intervals reaches, and where it may begin at the earliest.

    `lowest` int64[g, m + 1] as of `limits.lower_bounds`. Both int64[K] over the counts, as
    positions: for intervals from 0 on, and for intervals up to m.
    """
    tasks = lowest.shape[1] - 1
    total = strides[-1] * (counts[-1] + 1)
    farthest, earliest = np.zeros(total, np.int64), np.full(total, tasks, np.int64)
    for used in range(1, total):
        for grade in range(len(counts)):
            if used // strides[grade] % (counts[grade] + 1) > 0:
                fewer = used - strides[grade]
                reached = np.searchsorted(lowest[grade], farthest[fewer], side="right") - 1
                farthest[used] = max(farthest[used], reached)
                earliest[used] = min(earliest[used], lowest[grade, earliest[fewer]])
    return farthest, earliest
