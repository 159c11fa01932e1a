"""JSON problems and plans, as `python -m algorithms admission` reads and prints them."""

from typing import Any

import pytest

from algorithms.admission.problem import StreamTooLarge
from algorithms.errors import BadParameters, BadProblem
from algorithms.lab.admission.planner import PLANNER

PROBLEM: dict[str, Any] = {
    "capacity": 10,
    "nodes": {"n1": ["s1", "s2", "s3"], "n2": ["s4"]},
    "streams": {
        "s1": {"history": [3, 3]},
        "s2": {"history": [5, 5]},
        "s3": {"history": [4, 4], "meta": {"peak": 9}},
        "s4": {"history": [2, 2]},
        "s5": {"meta": {"rate": 6}},
    },
    "new": ["s5"],
    "horizon": 3,
}
STRATEGIES = ("par", "ari", "ard", "drf", "drf_m", "profile")


def run(strategy: str, data: Any, **values: Any) -> dict[str, Any]:
    return PLANNER.run(PLANNER.algorithm(strategy), data, values)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_prints_a_whole_plan(strategy: str) -> None:
    found = run(strategy, PROBLEM)
    assert set(found) == {"moves", "opened", "closed", "assignment", "forecast"}
    assert set(found["assignment"]) == set(PROBLEM["streams"])
    assert found["forecast"]["s1"] == [3.0, 3.0, 3.0]
    before = {name: node for node, names in PROBLEM["nodes"].items() for name in names}
    for stream, source, target in found["moves"]:
        assert (before[stream], found["assignment"][stream]) == (source, target)


def test_a_known_peak_moves_its_stream() -> None:
    found = run("drf_m", PROBLEM)
    assert found["moves"] == [["s3", "n1", "n3"]]
    assert found["opened"] == ["n3"]
    assert found["assignment"]["s5"] == "n2"


def test_names_of_new_nodes_are_free() -> None:
    nodes = {"n3": ["s1", "s2", "s3"], "n2": ["s4"]}
    assert run("drf_m", PROBLEM | {"nodes": nodes})["opened"] == ["n4"]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"capacity": 0}, "capacity"),
        ({"capacity": True}, "capacity"),
        ({"new": []}, "streams.s5"),
        ({"new": ["s5", "s1"]}, "new"),
        ({"new": "s5"}, "new"),
        ({"nodes": {"n1": ["s1", "s2", "s3", "s9"], "n2": ["s4"]}}, "nodes.n1"),
        ({"nodes": {"n1": ["s1", "s2", "s3"], "n2": ["s4", "s1"]}}, "nodes.n2"),
        ({"streams": PROBLEM["streams"] | {"s1": {"history": [3, -1]}}}, "streams.s1.history[1]"),
        ({"streams": PROBLEM["streams"] | {"s1": {"rates": [3]}}}, "streams.s1.rates"),
        ({"streams": PROBLEM["streams"] | {"s1": {"meta": {"top": 3}}}}, "streams.s1.meta.top"),
        ({"streams": PROBLEM["streams"] | {"s1": {"meta": {"peak": -3}}}}, "streams.s1.meta.peak"),
        ({"more": 1}, "more"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], where: str) -> None:
    with pytest.raises(BadProblem) as caught:
        run("drf_m", PROBLEM | change)
    assert caught.value.where == where


def test_a_rate_above_the_capacity_names_its_stream() -> None:
    streams = PROBLEM["streams"] | {"s4": {"history": [12]}}
    with pytest.raises(StreamTooLarge) as caught:
        run("drf_m", PROBLEM | {"streams": streams})
    assert (caught.value.stream, caught.value.rate) == ("s4", 12)


def test_the_horizon_has_bounds() -> None:
    with pytest.raises(BadParameters) as caught:
        run("drf_m", PROBLEM | {"horizon": 0})
    assert "horizon" in caught.value.fields
