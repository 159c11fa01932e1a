"""The migration transition matrix, from a history and as it is given."""

from typing import Any

import numpy as np
import pytest

from algorithms.errors import BadProblem
from algorithms.lab.migration.future.transitions import Transitions, futures
from algorithms.random_numbers import new_state


def test_changes_are_counted_and_repetitions_are_none() -> None:
    found = Transitions.from_history([2, 2, 3, 2, 3, 3, 4, 3])
    assert found.counts.tolist() == [2, 3, 4]
    assert found.chances.tolist() == [[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]]


def test_a_number_that_only_ends_the_history_can_be_left() -> None:
    found = Transitions.from_history([2, 3, 2, 5])
    assert found.chances.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("history", [[], [3], [3, 3], [0, 1], [1.5, 2]])
def test_a_history_without_a_change_is_refused(history: list[Any]) -> None:
    with pytest.raises(BadProblem, match="history"):
        Transitions.from_history(history)


@pytest.mark.parametrize(
    "matrix", [{}, {"2": {"2": 0.5}}, {"2": {"3": 1}}, {"x": {"2": 1}}, {"2": {"2": -1, "3": 2}}]
)
def test_a_matrix_must_hold_chances(matrix: Any) -> None:
    with pytest.raises(BadProblem, match="matrix"):
        Transitions.from_matrix(matrix)


def test_futures_follow_the_chances() -> None:
    found = Transitions.from_history([2, 3, 4, 3, 2, 3, 4, 3, 3, 2])
    drawn = futures(found.totals, 1, 4_000, 3, new_state(0))
    assert set(drawn[:, 0]) == {0, 2}
    assert np.mean(drawn[:, 0] == 2) == pytest.approx(found.chances[1, 2], abs=0.03)
    assert set(drawn[:, 1]) == {1}
