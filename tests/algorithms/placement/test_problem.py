from typing import Any

import numpy as np
import pytest

from algorithms.errors import BadProblem, Infeasible
from algorithms.placement.problem import PlacementProblem
from tests.algorithms.placement.instances import chain, crowded


def test_rows_are_sorted_and_repetitions_dropped() -> None:
    """A query reads a set: order and repetition in the input mean nothing."""
    problem = PlacementProblem.from_lists([1, 1, 1], [[2, 0, 2], [1]], 1, 0)
    assert problem.indptr.tolist() == [0, 2, 3]
    assert problem.indices.tolist() == [0, 2, 1]


def test_lists_and_arrays_give_the_same_problem() -> None:
    lists = PlacementProblem.from_lists([1.0, 2.0], [[0, 1], [1]], 2, 0.5)
    arrays = PlacementProblem.from_arrays([1.0, 2.0], [0, 2, 3], [1, 0, 1], 2, 0.5)
    assert lists.indices.tolist() == arrays.indices.tolist()
    assert lists.indptr.tolist() == arrays.indptr.tolist()


def test_the_arrays_cannot_be_written_and_the_callers_stay_theirs() -> None:
    """A frozen problem over an array that somebody changes would not be frozen."""
    rates = np.array([1.0, 2.0])
    problem = PlacementProblem.from_lists(rates, [[0], [1]], 1, 0)
    rates[0] = 9
    assert problem.rates.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        problem.rates[0] = 9


def test_capacity_floors_exactly() -> None:
    """1.15 * 100 is 114.99... in binary; the place must not be lost."""
    assert PlacementProblem.from_lists([1], [[0]] * 100, 1, 0.15).caps.tolist() == [115]
    assert chain().caps.tolist() == [4, 4]
    assert crowded().caps.tolist() == [3, 3, 3]


def test_too_few_places_are_infeasible_with_the_numbers() -> None:
    with pytest.raises(Infeasible) as caught:
        crowded().require_feasible()
    error = caught.value
    assert (error.queries, error.servers, error.caps, error.places, error.nu) == (
        10,
        3,
        (3, 3, 3),
        9,
        0.0,
    )
    assert error.smallest == 0.2
    assert "the least at which they fit is 0.2" in str(error)


def test_the_slack_that_the_message_names_is_enough() -> None:
    """A third is not a decimal: 0.333333 would be too little."""
    problem = PlacementProblem.from_lists([1.0], [[0]] * 3, 4, 0.05)
    with pytest.raises(Infeasible, match=r"is 0\.333334$") as caught:
        problem.require_feasible()
    for slack in (0.333334, caught.value.smallest):
        PlacementProblem.from_lists([1.0], [[0]] * 3, 4, slack).require_feasible()


def test_lower_bound_counts_the_servers_a_popular_source_must_reach() -> None:
    """B has five readers and a server four places, so that B is delivered twice: 5, not 4."""
    assert chain().lower_bound(chain().caps) == 5


def test_a_problem_without_queries_is_a_problem() -> None:
    """A cluster is empty before its first query."""
    problem = PlacementProblem.from_lists([1.0], [], 2, 0.05)
    assert (problem.queries, problem.caps.max(), problem.live_rate) == (0, 0, 0.0)


_GOOD: dict[str, Any] = {"rates": [1, 1], "queries": [[0], [1]], "servers": 1, "nu": 0.0}


@pytest.mark.parametrize(
    ("change", "where", "why"),
    [
        ({"rates": [1, float("nan")]}, "rates[1]", "finite"),
        ({"rates": [1, float("inf")]}, "rates[1]", "finite"),
        ({"rates": [-1, 1]}, "rates[0]", "not negative"),
        ({"rates": ["a", "b"]}, "rates", "numbers"),
        ({"rates": [[1, 1]]}, "rates", "dimension"),
        ({"queries": [[0], []]}, "queries[1]", "no source"),
        ({"queries": [[0], [0, 2]]}, "queries[1]", "source 2"),
        ({"queries": [[-1], [0]]}, "queries[0]", "source -1"),
        ({"queries": [[0.5], [0]]}, "queries", "whole numbers"),
        ({"servers": 0}, "servers", "at least 1"),
        ({"servers": 1.5}, "servers", "whole number"),
        ({"nu": -0.1}, "nu", "not negative"),
        ({"nu": float("nan")}, "nu", "finite"),
        ({"nu": "x"}, "nu", "number"),
    ],
)
def test_bad_input_is_refused_by_name(change: dict[str, Any], where: str, why: str) -> None:
    """Whoever gets the error can point at the value."""
    with pytest.raises(BadProblem) as caught:
        PlacementProblem.from_lists(**(_GOOD | change))
    assert caught.value.where == where
    assert why in caught.value.why


@pytest.mark.parametrize(
    ("indptr", "indices", "where"),
    [
        ([1, 2], [0, 0], "indptr"),
        ([], [], "indptr"),
        ([0, 2, 1], [0], "indptr[2]"),
        ([0, 1, 1], [0], "queries[1]"),
        ([0, 1], [0, 0], "indices"),
    ],
)
def test_bad_rows_are_refused(indptr: list[int], indices: list[int], where: str) -> None:
    with pytest.raises(BadProblem) as caught:
        PlacementProblem.from_arrays([1.0], indptr, indices, 1, 0.0)
    assert caught.value.where == where
