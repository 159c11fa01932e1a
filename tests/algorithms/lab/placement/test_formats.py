from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from algorithms.errors import BadProblem
from algorithms.lab.placement.formats import plan_to_json, problem_from_frame, problem_from_json
from algorithms.placement.offline import IncrementalCost
from tests.algorithms.placement.instances import chain

GOOD: dict[str, Any] = {
    "rates": {"A": 1, "B": 2.5},
    "queries": [["B", "A"], ["A"], ["A", "A"]],
    "servers": 2,
}
COLUMNS = {"query": ["q2", "q1", "q2"], "source": ["A", "A", "B"]}
MISSING: list[Any] = [None, pd.NA]
RATES = {"A": 1.0, "B": 2.5}


def test_sources_are_numbered_as_their_rates_are_listed() -> None:
    """And queries keep their order: it is the order of arrival."""
    problem = problem_from_json(GOOD, 0.05)
    assert problem.rates.tolist() == [1, 2.5]
    assert [problem.sources_of(query).tolist() for query in range(3)] == [[0, 1], [0], [0]]
    assert (problem.servers, problem.nu, problem.equal_servers) == (2, 0.05, True)


def test_capacities_and_slack_may_be_in_the_json() -> None:
    problem = problem_from_json(GOOD | {"capacities": [1, 3], "nu": 0.5}, 0.05)
    assert problem.capacities.tolist() == [1, 3]
    assert problem.nu == 0.5
    assert problem_from_json(GOOD | {"capacities": None}, 0.0).equal_servers


@pytest.mark.parametrize(
    ("change", "where", "why"),
    [
        ({"rates": {"A": -1, "B": 1}}, "rates.A", "not negative"),
        ({"rates": {"A": float("nan"), "B": 1}}, "rates.A", "finite"),
        ({"rates": {"A": float("inf"), "B": 1}}, "rates.A", "finite"),
        ({"rates": {"A": 10**400, "B": 1}}, "rates.A", "finite"),
        ({"rates": {"A": 1e300, "B": 1}}, "rates[0]", "at most"),
        ({"rates": {"A": "1", "B": 1}}, "rates.A", "a number"),
        ({"rates": {"A": True, "B": 1}}, "rates.A", "a number"),
        ({"rates": [1, 2]}, "rates", "by name"),
        ({"rates": {}}, "queries[0]", "'B', which has no rate"),
        ({"queries": [["A"], []]}, "queries[1]", "no source"),
        ({"queries": [["A"], ["C"]]}, "queries[1]", "'C', which has no rate"),
        ({"queries": [["A"], [["A"]]]}, "queries[1]", "no rate"),
        ({"queries": [["A"], "AB"]}, "queries[1]", "must be a list"),
        ({"queries": "A"}, "queries", "must be a list"),
        ({"servers": 0}, "servers", "at least 1"),
        ({"servers": "2"}, "servers", "whole number"),
        ({"servers": 10**30}, "servers", "at most"),
        ({"capacities": [1]}, "capacities", "each of 2 servers"),
        ({"capacities": [1, 0]}, "capacities[1]", "above 0"),
        ({"capacities": [1, "x"]}, "capacities[1]", "a number"),
        ({"capacities": 1}, "capacities", "a list"),
        ({"nu": -0.1}, "nu", "not negative"),
        ({"nu": None}, "nu", "a number"),
        ({"speed": 1}, "speed", "is unknown"),
    ],
)
def test_bad_json_is_refused_by_name(change: dict[str, Any], where: str, why: str) -> None:
    with pytest.raises(BadProblem) as caught:
        problem_from_json(GOOD | change, 0.05)
    assert caught.value.where == where
    assert why in caught.value.why


@pytest.mark.parametrize("data", [None, 3, "x", [GOOD], {}])
def test_what_is_no_object_or_lacks_fields_is_refused(data: Any) -> None:
    with pytest.raises(BadProblem, match="queries, servers"):
        problem_from_json(data, 0.05)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS).astype("category"),
        pd.DataFrame(COLUMNS).astype("string"),
        pa.table(COLUMNS),
        COLUMNS,
    ],
    ids=["pandas", "categories", "strings", "arrow", "dict"],
)
def test_a_table_has_a_row_for_each_source_of_each_query(frame: Any) -> None:
    """Rows of a query need not be neighbours; queries are numbered as they first appear."""
    for rates in (RATES, pd.Series(RATES)):
        problem = problem_from_frame(frame, rates, 2, 0.05, [1, 2])
        assert [problem.sources_of(query).tolist() for query in range(2)] == [[0, 1], [0]]
        assert problem.rates.tolist() == [1, 2.5]
        assert problem.capacities.tolist() == [1, 2]


def test_columns_may_have_other_names() -> None:
    frame = pd.DataFrame({"trip": [7, 7], "tile": [1, 0]})
    problem = problem_from_frame(frame, {0: 1.0, 1: 1.0}, 1, 0.0, query="trip", source="tile")
    assert problem.indices.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("frame", "where", "why"),
    [
        (pd.DataFrame(COLUMNS).assign(source=["A", MISSING[0], "B"]), "source[1]", "missing"),
        (pd.DataFrame(COLUMNS).assign(query=[1, np.nan, 2]), "query[1]", "missing"),
        (pd.DataFrame(COLUMNS).assign(query=["q", MISSING[1], "r"]), "query[1]", "missing"),
        (pa.table({"query": [1, None], "source": ["A", "B"]}), "query[1]", "missing"),
        (pd.DataFrame(COLUMNS).assign(source=["A", "C", "B"]), "source[1]", "'C'"),
        (pd.DataFrame(COLUMNS)[["query"]], "source", "not a column"),
        (pd.DataFrame([[1, 2, 3]], columns=["query", "source", "source"]), "source", "one column"),
        ({"query": [[1]], "source": ["A"]}, "query", "one column"),
        ({"query": [1, 2], "source": ["A"]}, "source", "1 rows where query has 2"),
        (5, "query", "not a column"),
    ],
)
def test_a_bad_table_is_refused_by_row(frame: Any, where: str, why: str) -> None:
    with pytest.raises(BadProblem) as caught:
        problem_from_frame(frame, RATES, 2, 0.05)
    assert caught.value.where == where
    assert why in caught.value.why


@pytest.mark.parametrize(
    ("rates", "why"),
    [(pd.Series([1, 2], index=["A", "A"]), "twice"), ([1, 2], "by name"), (None, "by name")],
)
def test_rates_of_a_table_are_by_name(rates: Any, why: str) -> None:
    with pytest.raises(BadProblem, match=why):
        problem_from_frame(COLUMNS, rates, 2, 0.05)


def test_a_plan_is_json_values_alone() -> None:
    problem = chain()
    shown = plan_to_json(IncrementalCost().solve(problem), problem.caps)
    assert shown.pop("seconds") >= 0
    assert shown.pop("assignment") == IncrementalCost().solve(problem).assignment.tolist()
    assert shown == {
        "traffic": 5.0,
        "replication_factor": 1.25,
        "max_load": 4,
        "lower_bound": 5.0,
        "feasible": True,
    }
    assert {type(value) for value in shown.values()} == {float, int, bool}


def test_a_plan_beyond_the_caps_says_so() -> None:
    problem = chain()
    plan = IncrementalCost().solve(problem)
    assert not plan_to_json(plan, problem.caps - 1)["feasible"]
