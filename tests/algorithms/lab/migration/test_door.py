"""The migration planner through its door: JSON in, JSON out, one clear line on bad input."""

import json
from typing import Any

import pytest

from algorithms.lab.__main__ import main

PROBLEM: dict[str, Any] = {
    "starts": [0, 13],
    "work": [1] * 20,
    "state": [1] * 20,
    "nodes": 3,
    "capacities": None,
}


def run(tmp_path: Any, capsys: Any, algorithm: str, problem: Any, *more: str) -> Any:
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(problem))
    code = main(["migration", algorithm, "--input", str(path), *more])
    out, err = capsys.readouterr()
    if code:
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err
    return json.loads(out)


def test_the_papers_example(tmp_path: Any, capsys: Any) -> None:
    plan = run(tmp_path, capsys, "single_step", PROBLEM, "--param", "tau=0.4")
    assert (plan["cost"], plan["gain"], plan["max_load"], plan["feasible"]) == (4, 16, 9, True)
    assert [tuple(run) for run in plan["intervals"]] == [(0, 0, 9), (2, 9, 13), (1, 13, 20)]


@pytest.mark.parametrize("name", ["free", "consistent_hashing", "storm", "storm_matched"])
def test_every_rival_answers_alike(tmp_path: Any, capsys: Any, name: str) -> None:
    plan = run(tmp_path, capsys, name, PROBLEM)
    assert plan["cost"] + plan["gain"] == 20
    assert sum(stop - first for _, first, stop in plan["intervals"]) == 20


def test_tau_may_stand_in_the_problem_and_is_overruled(tmp_path: Any, capsys: Any) -> None:
    loose = run(tmp_path, capsys, "single_step", PROBLEM | {"tau": 3.0})
    assert loose["cost"] == 0
    tight = run(tmp_path, capsys, "single_step", PROBLEM | {"tau": 3.0}, "--param", "tau=0.05")
    assert tight["max_load"] == 7


def test_an_infeasible_tau_names_the_smallest(tmp_path: Any, capsys: Any) -> None:
    line = run(tmp_path, capsys, "single_step", PROBLEM, "--param", "tau=0")
    assert "0.05" in line


def test_sequences_have_a_cost_per_step(tmp_path: Any, capsys: Any) -> None:
    plan = run(tmp_path, capsys, "sequence", PROBLEM | {"nodes": [3, 4]})
    assert plan["costs"] == [4, 2]
    assert plan["cost"] == 6


def test_chances_come_from_a_history_or_a_matrix(tmp_path: Any, capsys: Any) -> None:
    by_history = run(tmp_path, capsys, "mtm", PROBLEM | {"history": [2, 3, 2, 3, 2]})
    matrix = {"2": {"3": 1}, "3": {"2": 1}}
    by_matrix = run(tmp_path, capsys, "mtm", PROBLEM | {"matrix": matrix}, "--seed", "1")
    assert by_history["intervals"] == by_matrix["intervals"]


def test_transfers_are_scheduled(tmp_path: Any, capsys: Any) -> None:
    answer = run(tmp_path, capsys, "schedule", {"transfers": [[0, 4], [1, 0]]})
    assert answer["total"] == 4
    assert sum(phase["duration"] for phase in answer["phases"]) == 4


@pytest.mark.parametrize(
    ("algorithm", "problem", "word"),
    [
        ("single_step", PROBLEM | {"work": [1]}, "starts"),
        ("single_step", PROBLEM | {"state": [1]}, "state"),
        ("single_step", PROBLEM | {"nodes": [3]}, "sequence"),
        ("single_step", PROBLEM | {"nodes": 0}, "nodes"),
        ("single_step", PROBLEM | {"colour": 1}, "colour"),
        ("single_step", {"nodes": 1}, "lacks"),
        ("single_step", [], "object"),
        ("sequence", PROBLEM, "nodes"),
        ("mtm", PROBLEM, "history"),
        ("mtm", PROBLEM | {"history": 3}, "history"),
        ("mtm", PROBLEM | {"matrix": 3}, "matrix"),
        ("schedule", {"transfers": [[1]]}, "transfers[0][0]"),
        ("schedule", {}, "transfers"),
    ],
)
def test_bad_input_is_one_clear_line(
    tmp_path: Any, capsys: Any, algorithm: str, problem: Any, word: str
) -> None:
    assert word in run(tmp_path, capsys, algorithm, problem)
