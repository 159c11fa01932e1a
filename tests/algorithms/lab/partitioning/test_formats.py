import json
from typing import Any

import pytest

from algorithms.errors import BadParameters, BadProblem, UnknownAlgorithm
from algorithms.lab.partitioning.certificate import Counts, certify
from algorithms.lab.partitioning.formats import key_hash
from algorithms.lab.partitioning.planner import PLANNER
from algorithms.partitioning.catalog import GROUPINGS

LISTED: dict[str, Any] = {"keys": ["a", "b", "a"], "workers": 3, "capacities": None}
DRAWN: dict[str, Any] = {"zipf": 1.0, "distinct": 1_000, "messages": 20_000, "workers": 10}


def run(name: str, problem: object, **parameters: Any) -> dict[str, Any]:
    return PLANNER.run(PLANNER.algorithm(name), problem, parameters)


@pytest.mark.parametrize("name", GROUPINGS)
def test_every_grouping_assigns_listed_keys(name: str) -> None:
    keys = [f"key {number * number % 37}" for number in range(500)]
    for capacities in (None, [1, 2, 3, 4]):
        row = run(name, {"keys": keys, "workers": 4, "capacities": capacities, "times": None})
        assert list(row) == ["loads", "imbalance", "memory", "assignment"]
        # Only these weight workers by default or not: the imbalance is that of the capacities.
        claimed = Counts(row["loads"], row["memory"], row["imbalance"])
        certify(keys, row["assignment"], claimed, capacities)
        assert json.loads(json.dumps(row, allow_nan=False)) == row


@pytest.mark.parametrize("name", GROUPINGS)
def test_every_grouping_assigns_drawn_keys(name: str) -> None:
    row = run(name, DRAWN)
    assert list(row) == ["loads", "imbalance", "memory"]
    assert (len(row["loads"]), sum(row["loads"])) == (10, 20_000)
    assert row["imbalance"] == pytest.approx(max(row["loads"]) - 2_000)


def test_seeds_draw_the_stream() -> None:
    first, again, other = (run("key", DRAWN | {"seed": seed})["loads"] for seed in (1, 1, 2))
    assert first == again != other
    assert run("key", DRAWN, seed=2)["loads"] == other


def test_texts_and_numbers_are_different_keys() -> None:
    assert key_hash("1") != key_hash(1)
    assert key_hash("a") == key_hash("a")
    assert run("key", LISTED | {"keys": [1, "1", 2**70, -1, "ä", "\ud800"]})["memory"] == 6


def test_times_name_the_panes() -> None:
    problem = {"keys": ["a"] * 4, "workers": 2, "times": [0, 999, 1_000, 2_000]}
    assert run("panes", problem)["assignment"] == [0, 0, 1, 0]


def test_no_messages() -> None:
    row = run("head_aware", {"keys": [], "workers": 2})
    assert row == {"loads": [0, 0], "imbalance": 0.0, "memory": 0, "assignment": []}


@pytest.mark.parametrize(
    ("problem", "where"),
    [
        ([], "input"),
        ({"workers": 3}, "input"),
        ({"keys": ["a"]}, "input"),
        (LISTED | {"extra": 1}, "extra"),
        (DRAWN | {"keys": []}, "keys"),
        (LISTED | {"keys": "aba"}, "keys"),
        (LISTED | {"keys": {"a": 1}}, "keys"),
        (LISTED | {"keys": ["a", None]}, "keys[1]"),
        (LISTED | {"keys": [True]}, "keys[0]"),
        (LISTED | {"keys": ["x" * 1_001]}, "keys[0]"),
        (LISTED | {"keys": [0] * 1_000_001}, "keys"),
        (LISTED | {"times": [1]}, "times"),
        (LISTED | {"times": [1, 2, -3]}, "times[2]"),
        (LISTED | {"workers": 0}, "workers"),
        (LISTED | {"workers": 10_001}, "workers"),
        (LISTED | {"workers": "3"}, "workers"),
        (LISTED | {"workers": True}, "workers"),
        (LISTED | {"capacities": [1, 0, 1]}, "capacities[1]"),
        (LISTED | {"capacities": [1, 1]}, "capacities"),
        (LISTED | {"capacities": [1, float("nan"), 1]}, "capacities[1]"),
        (DRAWN | {"zipf": -1}, "zipf"),
        (DRAWN | {"zipf": "1"}, "zipf"),
        (DRAWN | {"zipf": float("inf")}, "zipf"),
        (DRAWN | {"distinct": 0}, "distinct"),
        (DRAWN | {"distinct": 10_000_001}, "distinct"),
        (DRAWN | {"messages": 0}, "messages"),
        (DRAWN | {"messages": 50_000_001}, "messages"),
        (DRAWN | {"messages": 1.5}, "messages"),
        (DRAWN | {"workers": -2}, "workers"),
    ],
)
def test_bad_problems_are_refused_with_the_place(problem: object, where: str) -> None:
    with pytest.raises(BadProblem) as caught:
        run("random_choices", problem)
    assert caught.value.where == where


def test_bad_parameters_and_unknown_groupings() -> None:
    for problem in (LISTED, DRAWN):
        with pytest.raises(BadParameters) as caught:
            run("random_choices", problem, eps=-0.01)
        assert list(caught.value.fields) == ["eps"]
    with pytest.raises(UnknownAlgorithm):
        run("best", LISTED)
    with pytest.raises(BadParameters):
        run("key", LISTED, eps=0.1)


def test_progress_ascends_to_its_end() -> None:
    for problem in (DRAWN | {"messages": 2_500_000}, {"keys": [], "workers": 1}):
        shares: list[float] = []
        PLANNER.run(PLANNER.algorithm("key"), problem, {}, shares.append)
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
