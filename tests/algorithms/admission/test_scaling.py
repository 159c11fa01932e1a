"""The numbers of split, query and aggregator nodes, and their JSON form."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.admission.scaling import (
    LatencyTooShort,
    Parallelism,
    QueryLoad,
    QueryScale,
    ScalingProblem,
    next_count,
)
from algorithms.errors import BadParameters, BadProblem
from algorithms.lab.__main__ import main
from algorithms.lab.admission.planner import PLANNER

QUERY: dict[str, Any] = {
    "rate": 12_000, "operator_s": 0.0008, "merge_s": 0.00005, "node_rate": 1_125,
}  # fmt: skip
PROBLEM: dict[str, Any] = {
    "headroom": 0.1, "latency_s": 5, "interval_s": 1, "queries": {"q1": QUERY},
}  # fmt: skip


def run(data: Any, **values: Any) -> dict[str, Any]:
    return PLANNER.run(PLANNER.algorithm("parallelism"), data, values)


def scale(query: QueryLoad, interval_s: float = 1.0, **parameters: float) -> QueryScale:
    plan = Parallelism(**parameters).solve(ScalingProblem([query], interval_s))
    return plan.queries[0]


def test_the_command_line_prints_the_example_of_the_paper(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(PROBLEM))
    assert main(["admission", "parallelism", "--input", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"queries": {"q1": {"query_nodes": 11, "aggregator_nodes": 1}}}


def test_a_parameter_of_the_run_overrules_that_of_the_problem() -> None:
    assert run(PROBLEM, headroom=0.5)["queries"]["q1"]["query_nodes"] == 20


def test_present_numbers_give_those_after_the_period() -> None:
    found = run(PROBLEM | {"queries": {"q1": QUERY | {"tasks": 8, "aggregators": 3}}})
    assert found["queries"]["q1"] == {
        "query_nodes": 11, "aggregator_nodes": 1, "tasks": 11, "aggregators": 1,
    }  # fmt: skip


def test_split_nodes_hold_the_streams_in_every_period() -> None:
    opposite = {"a": [8, 2], "b": [2, 8], "c": [5]}
    found = run(PROBLEM | {"capacity": 10, "streams": opposite})
    assert found["split_nodes"] == 2
    assert run(PROBLEM | {"capacity": 10, "streams": {}})["split_nodes"] == 0


def test_a_short_latency_demands_a_lower_utilisation() -> None:
    """A batch may take half an interval, so nodes may be busy for half of their time."""
    query = QueryLoad("q", 100.0, 0.01)
    assert scale(query, headroom=0.0).query_nodes == 1
    assert scale(query, headroom=0.0, latency_s=1.5).query_nodes == 2
    assert scale(query, headroom=0.0, latency_s=15.0, interval_s=10.0).query_nodes == 2
    assert scale(query, headroom=0.6, latency_s=1.5).query_nodes == 3


@pytest.mark.parametrize("latency_s", [0.5, 1.0])
def test_a_latency_of_one_interval_is_impossible(latency_s: float) -> None:
    with pytest.raises(LatencyTooShort, match="interval of micro-batches, 1 s") as caught:
        scale(QueryLoad("q", 1.0, 0.1), latency_s=latency_s)
    assert (caught.value.latency_s, caught.value.interval_s) == (latency_s, 1.0)


def test_without_costs_of_merging_the_aggregator_nodes_stay() -> None:
    query = QueryLoad("q", 100.0, 0.01, tasks=9, aggregators=4)
    assert scale(query) == QueryScale(2, None, 2, 4)


@given(st.integers(0, 100), st.integers(1, 100))
def test_numbers_do_not_alternate(present: int, needed: int) -> None:
    after = next_count(present, needed)
    assert after >= needed
    assert after in (present, needed)
    assert next_count(after, needed) == after
    assert after == present or not needed <= present <= 2 * needed


@given(
    st.floats(0, 1e6), st.floats(0, 1e-2), st.floats(0, 1e-3), st.floats(0, 1e5),
    st.floats(0, 0.9),
)  # fmt: skip
def test_the_least_numbers_keep_the_headroom(
    rate: float, operator_s: float, merge_s: float, node_rate: float, headroom: float
) -> None:
    query = QueryLoad("q", rate, operator_s, merge_s, node_rate)
    found = scale(query, headroom=headroom)
    count, merging = found.query_nodes, found.aggregator_nodes
    assert merging is not None
    limit = 1 - headroom

    def fits(load: float, nodes: int) -> bool:
        return load <= nodes * limit * (1 + 1e-9) + 1e-9

    assert fits(rate * operator_s, count)
    assert count == 1 or rate * operator_s > (count - 1) * limit
    assert fits(count * node_rate * merge_s, merging)
    assert merging == 1 or count * node_rate * merge_s > (merging - 1) * limit


def test_the_largest_values_give_a_number() -> None:
    query = QueryLoad("q", 1e12, 3600.0, 3600.0, 1e12)
    found = scale(query, headroom=0.9, latency_s=float(np.nextafter(1.0, 2.0)))
    assert found.query_nodes > 1e12


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"interval_s": 0}, "interval_s"),
        ({"interval_s": "1"}, "interval_s"),
        ({"queries": []}, "queries"),
        ({"queries": {"q1": 3}}, "queries.q1"),
        ({"queries": {"q1": {"rate": 3}}}, "queries.q1"),
        ({"queries": {"q1": QUERY | {"rate": -1}}}, "queries.q1.rate"),
        ({"queries": {"q1": QUERY | {"rate": True}}}, "queries.q1.rate"),
        ({"queries": {"q1": QUERY | {"operator_s": 1e9}}}, "queries.q1.operator_s"),
        ({"queries": {"q1": QUERY | {"merge_s": None}}}, "queries.q1.merge_s"),
        ({"queries": {"q1": QUERY | {"tasks": 1.5}}}, "queries.q1.tasks"),
        ({"queries": {"q1": QUERY | {"nodes": 1}}}, "queries.q1.nodes"),
        ({"streams": {"s1": [1]}}, "capacity"),
        ({"capacity": 1, "streams": {"s1": [-1]}}, "streams.s1[0]"),
        ({"capacity": 1, "streams": {"s1": []}}, "streams.s1"),
        ({"more": 1}, "more"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], where: str) -> None:
    with pytest.raises(BadProblem) as caught:
        run(PROBLEM | change)
    assert caught.value.where == where


@pytest.mark.parametrize("change", [{"headroom": 1.0}, {"latency_s": -1}, {"headroom": "0.1"}])
def test_parameters_have_bounds(change: dict[str, Any]) -> None:
    with pytest.raises(BadParameters) as caught:
        run(PROBLEM | change)
    assert set(caught.value.fields) == set(change)
