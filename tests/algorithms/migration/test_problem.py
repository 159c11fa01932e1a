"""Bad input is refused with the place and the reason."""

from typing import Any

import pytest

from algorithms.errors import BadProblem
from algorithms.migration.problem import MigrationProblem

GOOD: dict[str, Any] = {
    "work": [1, 2],
    "state": [3, 4],
    "starts": [0, 1],
    "nodes": 2,
    "tau": 0.4,
}


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"work": []}, "work"),
        ({"work": [1, float("nan")]}, "work[1]"),
        ({"work": [1, -1]}, "work[1]"),
        ({"work": "ab"}, "work"),
        ({"state": [1]}, "state"),
        ({"state": [1, float("inf")]}, "state[1]"),
        ({"starts": []}, "starts"),
        ({"starts": [1]}, "starts[0]"),
        ({"starts": [0, 2, 1]}, "starts[2]"),
        ({"starts": [0, 3]}, "starts[1]"),
        ({"starts": [0, 0.5]}, "starts"),
        ({"nodes": 0}, "nodes"),
        ({"nodes": 1.5}, "nodes"),
        ({"nodes": True}, "nodes"),
        ({"nodes": 3}, "nodes"),
        ({"tau": -0.1}, "tau"),
        ({"tau": float("nan")}, "tau"),
        ({"tau": "x"}, "tau"),
        ({"capacities": [1]}, "capacities"),
        ({"capacities": [1, 0]}, "capacities"),
        ({"capacities": [1, -1]}, "capacities[1]"),
    ],
)
def test_bad_input_names_its_place(change: dict[str, Any], where: str) -> None:
    with pytest.raises(BadProblem) as refusal:
        MigrationProblem.of(**{**GOOD, **change})
    assert refusal.value.where == where


def test_limits_follow_definition_3_1() -> None:
    assert MigrationProblem.of(**GOOD).limits.tolist() == pytest.approx([2.1, 2.1])


def test_unequal_nodes_share_by_capacity() -> None:
    problem = MigrationProblem.of(**{**GOOD, "capacities": [1, 3]})
    assert problem.limits.tolist() == pytest.approx([1.05, 3.15])
