import json
from typing import Any

import pytest
from hypothesis import given, settings

from algorithms.errors import BadProblem
from algorithms.lab.registry import planner
from algorithms.lab.shedding.formats import plan_to_json, problem_from_json, problem_to_json
from algorithms.shedding.lp import Lp
from algorithms.shedding.network import OperatorKind
from algorithms.shedding.problem import SheddingProblem
from tests.algorithms.shedding.networks import figure_7, problem, problems

SMALL: dict[str, Any] = {
    "nodes": {"A": 1.0},
    "inputs": {"i1": 1.0},
    "operators": [{"name": "a1", "node": "A", "cost": 1.0, "selectivity": 1.0, "from": ["i1"]}],
    "outputs": {"a1": 1.0},
}


def changed(**more: Any) -> dict[str, Any]:
    """Return the small problem with other fields of its operator."""
    return SMALL | {"operators": [SMALL["operators"][0] | more]}


def without(field: str) -> dict[str, Any]:
    row = {name: value for name, value in SMALL["operators"][0].items() if name != field}
    return SMALL | {"operators": [row]}


@settings(deadline=None)
@given(problems(links=True, floors=True))
def test_a_problem_is_the_same_after_json(given_problem: SheddingProblem) -> None:
    data = json.loads(json.dumps(problem_to_json(given_problem)))
    again = problem_from_json(data)
    assert again.network == given_problem.network
    assert dict(again.rates) == dict(given_problem.rates)
    assert problem_to_json(again) == data


def test_defaults_need_not_be_written() -> None:
    network = problem_from_json(SMALL).network
    assert network.by_name["a1"].kind is OperatorKind.CHAIN
    assert (network.links, network.floors) == ({}, {})


def test_joins_and_unions_have_a_kind() -> None:
    data = SMALL | {
        "inputs": {"i1": 1, "i2": 2},
        "operators": [
            {"name": "j", "node": "A", "cost": 1, "selectivity": 0.5, "from": ["i1", "i2"],
             "kind": "join", "windows": [4, 10]},
            {"name": "u", "node": "A", "cost": 1, "selectivity": 1, "from": ["j"], "kind": "union"},
        ],
        "outputs": {"u": 1},
        "links": {"A->A": 5},
        "floors": {"u": 0.5},
    }  # fmt: skip
    network = problem_from_json(data).network
    assert network.by_name["j"].gains == (5, 2)
    assert network.by_name["u"].kind is OperatorKind.UNION
    assert (network.links, network.floors) == ({("A", "A"): 5}, {"u": 0.5})


def test_a_plan_is_written_with_fractions_loads_and_parts_kept() -> None:
    report = plan_to_json(Lp().solve(problem(figure_7(), 0.2)))
    assert json.loads(json.dumps(report)) == report
    assert report["value"] == pytest.approx(0.28)
    assert report["keep"] == pytest.approx({"i1": 1, "common->upper": 1, "common->lower": 0.4})
    assert report["loads"] == pytest.approx({"A": 1})
    assert report["kept"] == pytest.approx({"upper": 1, "lower": 0.4})


def test_the_planner_reads_solves_and_reports() -> None:
    shedding = planner("shedding")
    report = shedding.run(shedding.algorithm("lp"), SMALL | {"inputs": {"i1": 4.0}}, {})
    assert report == {"value": 1, "keep": {"i1": 0.25}, "loads": {"A": 1}, "kept": {"a1": 0.25}}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (None, "input: must be a JSON object with nodes, inputs, operators, outputs"),
        ([SMALL], "input: must be a JSON object"),
        ({}, "input: lacks nodes, inputs, operators, outputs"),
        (SMALL | {"node": {}}, "node: is unknown; known: nodes, inputs"),
        (SMALL | {"nodes": []}, "nodes: must be an object of names and numbers"),
        (SMALL | {"inputs": ["i1"]}, "inputs: must be an object of names and numbers"),
        (SMALL | {"outputs": None}, "outputs: must be an object of names and numbers"),
        (SMALL | {"links": []}, "links: must be an object of names and numbers"),
        (SMALL | {"links": {"A": 1}}, "links.A->: must name two nodes, joined by ->"),
        (SMALL | {"floors": 3}, "floors: must be an object of names and numbers"),
        (SMALL | {"operators": {}}, "operators: must be a list"),
        (SMALL | {"operators": []}, "operators: must not be empty"),
        (SMALL | {"operators": ["a1"]}, "operators[0]: must be an object with name, node"),
        (SMALL | {"inputs": {"i1": None}}, "inputs.i1: is missing: it was not measured yet"),
        (SMALL | {"inputs": {"i1": "fast"}}, "inputs.i1: must be a finite number, not 'fast'"),
        (SMALL | {"nodes": {"A": 0}}, "nodes.A: must be above 0"),
        (without("cost"), "operators.a1: lacks cost"),
        (without("name"), "operators[0]: lacks name"),
        (changed(name="") | {"outputs": {}}, "operators: needs names of text"),
        (changed(name=3), "operators[0].name: must be text, not 3"),
        (changed(weight=1), "operators.a1: has unknown weight"),
        (changed(cost=None), "operators.a1.cost: is missing: it was not measured yet"),
        (changed(cost=-1), "operators.a1.cost: must be at least 0"),
        (changed(kind="window"), "operators.a1.kind: must be one of chain, union, join"),
        (changed(kind=3), "operators.a1.kind: must be one of chain, union, join"),
        (changed(**{"from": "i1"}), "operators.a1.from: must be a list"),
        (changed(**{"from": [["i1"]]}), "operators.a1.from: names no input or operator"),
        (changed(windows=3), "operators.a1.windows: must be a list"),
        (changed(node="B"), "operators.a1.node: is unknown: 'B'"),
        (changed(node=None), "operators.a1.node: must be text, not None"),
    ],
)
def test_bad_input_is_rejected_with_its_place(data: object, why: str) -> None:
    with pytest.raises(BadProblem) as caught:
        problem_from_json(data)
    assert str(caught.value).startswith(why)


@pytest.mark.parametrize(
    "data",
    [
        changed(kind=["join"]),
        changed(kind={}),
        changed(name=["a1"]),
        changed(name={}),
        changed(node=["A"]),
        changed(node={}),
        changed(windows=[[1], {}]),
        changed(cost=[1]),
        SMALL | {"outputs": {"a1": [1]}},
        SMALL | {"nodes": {"A": {}}},
    ],
)
def test_values_of_other_types_are_rejected(data: object) -> None:
    """Lists and objects, which cannot be looked up as names, as well."""
    with pytest.raises(BadProblem):
        problem_from_json(data)
