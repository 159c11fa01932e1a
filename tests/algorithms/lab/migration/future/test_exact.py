"""Sequences and projected costs, exact: against brute force and against their definitions."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from algorithms.errors import BadProblem, TooLarge
from algorithms.lab.migration.future.exact import project
from algorithms.lab.migration.future.matching import costs_between, retained_bytes
from algorithms.lab.migration.future.partitionings import (
    count_partitionings,
    optimal_sequence,
    partitionings,
)
from algorithms.lab.migration.future.projection import Landscape
from algorithms.lab.migration.future.transitions import Transitions
from algorithms.vocabulary import Floats, Ints

UNIT = np.arange(21.0)
ONES = np.ones(20)
MATRIX = {
    2: {2: 0.3, 3: 0.6, 4: 0.1},
    3: {2: 0.3, 3: 0.4, 4: 0.3},
    4: {2: 0.1, 3: 0.5, 4: 0.4},
}


def cuts_of(draw: np.random.Generator, tasks: int) -> Ints:
    inner = np.sort(draw.integers(0, tasks + 1, int(draw.integers(0, 5))))
    return np.concatenate([[0], inner, [tasks]]).astype(np.int64)


def matched(kept: Floats, old: Ints, new: Ints) -> float:
    """Return what stays, by a matching of all pairs of intervals."""
    table = [
        [max(0.0, kept[min(b, d)] - kept[max(a, c)]) for c, d in itertools.pairwise(new)]
        for a, b in itertools.pairwise(old)
    ]
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(np.array(table)[rows, columns].sum())


def test_the_staircase_matching_is_optimal() -> None:
    draw = np.random.default_rng(0)
    for _ in range(500):
        kept = np.concatenate([[0], np.cumsum(draw.integers(0, 9, 15))]).astype(float)
        old, new = cuts_of(draw, 15), cuts_of(draw, 15)
        assert retained_bytes(kept, old, new) == matched(kept, old, new)


def test_partitionings_are_counted_before_they_are_listed() -> None:
    """Section 4.2's enumeration is out of reach at its own defaults."""
    unit = np.arange(65.0)
    assert count_partitionings(unit, 2.2 * 64 / 8, 8) == 283_943_537
    assert count_partitionings(unit, 2.2 * 64 / 16, 16) == 70_886_845_397_481
    with pytest.raises(TooLarge, match="283,943,537"):
        partitionings(unit, 2.2 * 64 / 8, 8, 1_000_000)


def test_every_partitioning_is_listed_once() -> None:
    draw = np.random.default_rng(1)
    for _ in range(100):
        work = np.concatenate([[0], np.cumsum(draw.integers(0, 4, 7))]).astype(float)
        limit, parts = float(draw.integers(1, 10)), int(draw.integers(1, 5))
        wanted = [
            (0, *inner, 7)
            for inner in itertools.combinations_with_replacement(range(8), parts - 1)
            if all(work[b] - work[a] <= limit for a, b in itertools.pairwise((0, *inner, 7)))
        ]
        assert count_partitionings(work, limit, parts) == len(wanted)
        assert [tuple(row) for row in partitionings(work, limit, parts, 10_000)] == sorted(wanted)


def bytes_of(kept: Floats, steps: list[Any]) -> list[float]:
    return [
        float(kept[-1]) - matched(kept, np.array(one), np.array(other))
        for one, other in itertools.pairwise(steps)
    ]


def test_sequences_are_optimal() -> None:
    draw = np.random.default_rng(2)
    for _ in range(30):
        kept = np.concatenate([[0], np.cumsum(draw.integers(0, 9, 7))]).astype(float)
        work = np.arange(8.0)
        present, nodes = cuts_of(draw, 7), draw.integers(1, 4, 3).tolist()
        ways = [partitionings(work, 1.5 * 7 / count, count, 10_000) for count in nodes]
        best = min(sum(bytes_of(kept, [present, *way])) for way in itertools.product(*ways))
        found = optimal_sequence(work, kept, present, nodes, 0.5)
        assert sum(bytes_of(kept, [present, *found])) == best


def test_projected_costs_satisfy_their_equation() -> None:
    """C(P) is the mean over the next numbers of the least c(P, P') + gamma C(P')."""
    transitions = Transitions.from_matrix(MATRIX)
    projection = project(Landscape(ONES, ONES, 0.4, 0.8, transitions))
    for row in range(3):
        for at in range(0, len(projection.cuts[row]), 7):
            mean = 0.0
            for column in range(3):
                costs = costs_between(
                    UNIT, projection.cuts[row][at : at + 1], projection.cuts[column]
                )
                least = (costs[0] + 0.8 * projection.values[column]).min()
                mean += transitions.chances[row, column] * least
            assert projection.values[row][at] == pytest.approx(mean, abs=1e-6)


def test_a_discount_of_one_does_not_converge() -> None:
    with pytest.raises(BadProblem, match="gamma"):
        project(Landscape(ONES, ONES, 0.4, 1.0, Transitions.from_matrix(MATRIX)))
