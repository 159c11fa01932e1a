"""The JSON form of the recommendation: problems, results, and what is refused where."""

from typing import Any

import pytest

from algorithms.errors import BadParameters, BadProblem, UnknownGrouping
from algorithms.lab.partitioning.formats import key_hash
from algorithms.lab.partitioning.planner import PLANNER
from algorithms.lab.partitioning.recommendation_formats import problem_from_json

HOT: dict[str, Any] = {
    "keys": {"a": 60, **{f"k{i}": 1 for i in range(40)}}, "workers": 4, "records_per_s": 3_000,
    "capacities": [1_000, 1_000, 1_000, 1_000],
}  # fmt: skip


def recommended(data: object, **parameters: Any) -> dict[str, Any]:
    return PLANNER.run(PLANNER.algorithm("recommend"), data, parameters)


def test_a_hot_key_is_spread() -> None:
    result = recommended(HOT | {"present": {"grouping": "key"}})
    by_text = {
        (row["grouping"], len(row["loads"])): row
        for row in result["candidates"]
        if not set(row) & {"eps", "weighted"}
    }
    assert result["reason"] == "balance"
    assert by_text["key", 4]["imbalance"] > 0.5
    chosen = next(
        row for row in result["candidates"] if result["recommended"].items() <= row.items()
    )
    assert chosen["balanced"]
    assert sum(chosen["loads"]) == pytest.approx(1.0)


def test_parameters_of_the_problem_and_the_algorithm() -> None:
    strict = recommended(HOT, limit=0.0, messages=3_000, seed=2)
    assert {row["imbalance"] for row in strict["candidates"] if row["balanced"]} == {0.0}
    assert recommended(HOT | {"limit": 0.0, "messages": 3_000, "seed": 2}) == strict


def test_defaults_make_an_imbalance_a_part_of_the_mean() -> None:
    problem = problem_from_json({"keys": {"a": 1, "b": 3}, "workers": 2})
    assert problem.stream.utilisation == 1.0
    assert problem.stream.keys.hashes.tolist() == [key_hash("a"), key_hash("b")]
    assert problem.stream.keys.shares.tolist() == [0.25, 0.75]
    half = problem_from_json({"keys": {"a": 1}, "workers": 2, "capacities": [10, 30]})
    assert half.stream.records_per_s == 40
    rated = problem_from_json({"keys": {"a": 1}, "workers": 2, "records_per_s": 10})
    assert rated.stream.capacities.tolist() == [5.0, 5.0]


def test_a_zipf_stream() -> None:
    data = {"zipf": 1.0, "distinct": 1_000, "workers": 5, "present": {"grouping": "partial_key"}}
    problem = problem_from_json(data)
    assert problem.present == '{"grouping":"partial_key"}'
    assert problem.stream.keys.distinct == 1_000


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"keys": ["a"]}, "keys"),
        ({"keys": {}}, "keys"),
        ({"keys": {"a": 0}}, "keys"),
        ({"keys": {"a": -1}}, "keys[0]"),
        ({"workers": 0}, "workers"),
        ({"workers": True}, "workers"),
        ({"capacities": [1, 2]}, "capacities"),
        ({"capacities": [1, 1, 1, 0]}, "capacities[3]"),
        ({"records_per_s": -1}, "records_per_s"),
        ({"records_per_s": "fast"}, "records_per_s"),
        ({"interval_s": float("nan")}, "interval_s"),
        ({"merge_s": -1}, "merge_s"),
        ({"aggregators": 0}, "aggregators"),
        ({"present": "key"}, "present"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_bad_input_is_named(changed: dict[str, Any], where: str) -> None:
    with pytest.raises(BadProblem) as refused:
        recommended(HOT | changed)
    assert refused.value.where == where


def test_zipf_has_bounds() -> None:
    for changed, where in (({"zipf": -1}, "zipf"), ({"distinct": 0}, "distinct")):
        data = {"zipf": 1.0, "distinct": 5, "workers": 2} | changed
        with pytest.raises(BadProblem) as refused:
            problem_from_json(data)
        assert refused.value.where == where


def test_the_present_grouping_is_checked() -> None:
    with pytest.raises(UnknownGrouping):
        recommended(HOT | {"present": {"grouping": "nonsense"}})
    with pytest.raises(BadParameters):
        recommended(HOT | {"present": {"grouping": "random_choices", "eps": -1}})
