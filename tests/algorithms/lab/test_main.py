import json
import os
import signal
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from algorithms.lab.__main__ import main
from algorithms.lab.registry import PLACEMENT, PLANNERS, algorithms
from tests.support.signals import HEARING

SMALL: dict[str, Any] = {
    "rates": {"A": 1, "B": 1},
    "queries": [["A", "B"], ["A"]],
    "servers": 2,
    "capacities": None,
}
CHAIN = {
    "rates": dict.fromkeys("ABCD", 1),
    "queries": [*["AB"] * 3, *["BC"] * 2, *["CD"] * 2, "A"],
    "servers": 2,
}
PAIRS = {
    "rates": {"0": 5, "1": 1, "2": 3},
    "queries": ["0", "1", "01", "2", "02", "12"],
    "servers": 2,
}
FIGURE_1 = {
    "rates": {"0": 1, "1": 4, "2": 2, "3": 8},
    "queries": [*["0"] * 5, *["1"] * 3, *["2"] * 3, "3"],
    "servers": 3,
}


def written(folder: Path, problem: Any) -> str:
    """Write a problem, its queries perhaps as words of one-letter sources, and return the path."""
    if isinstance(problem, dict) and isinstance(problem.get("queries"), list):
        rows = [list(row) if isinstance(row, str) else row for row in problem["queries"]]
        problem = problem | {"queries": rows}
    path = folder / "problem.json"
    path.write_text(problem if isinstance(problem, str) else json.dumps(problem))
    return str(path)


@pytest.fixture
def solved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a call that answers with the plan of a problem."""

    def solve(algorithm: str, problem: dict[str, Any], *more: str) -> dict[str, Any]:
        code = main(["placement", algorithm, "--input", written(tmp_path, problem), *more])
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        plan: dict[str, Any] = json.loads(out)
        return plan

    return solve


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a call that answers with the one line on standard error."""

    def refuse(*arguments: str) -> str:
        assert main(arguments) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        return err

    return refuse


def test_a_plan_is_printed_as_json(solved: Any) -> None:
    plan = solved("least_cost", SMALL)
    assert plan.pop("seconds") >= 0
    assert plan == {
        "assignment": [0, 0],
        "traffic": 2.0,
        "replication_factor": 1.0,
        "max_load": 2,
        "lower_bound": 2.0,
        "feasible": True,
    }


@pytest.mark.parametrize(
    ("algorithm", "problem", "params", "traffic"),
    [
        ("ic", CHAIN, ["nu=0"], 5),
        ("mms", CHAIN, ["nu=0"], 5),
        ("least_cost", CHAIN, ["alpha=1"], 8),
        ("ic", FIGURE_1, ["nu=0"], 17),
        ("ic", PAIRS, ["nu=0"], 15),
        ("mms", PAIRS, ["nu=0"], 15),
        ("refined", PAIRS, ["nu=0", "seconds=0.2"], 13),
        ("least_cost", PAIRS, ["alpha=10", "nu=0.05"], 13),
    ],
)
def test_small_cases(
    solved: Any, algorithm: str, problem: dict[str, Any], params: list[str], traffic: float
) -> None:
    more = [word for param in params for word in ("--param", param)]
    assert solved(algorithm, problem, *more)["traffic"] == traffic


@pytest.mark.parametrize("algorithm", [one.name for one in algorithms(PLACEMENT)])
def test_every_algorithm_is_reached(solved: Any, algorithm: str) -> None:
    """Whether or not it draws at random, a seed may be given."""
    plan = solved(algorithm, FIGURE_1, "--seed", "3", "--param", "nu=1")
    assert plan["feasible"]
    assert len(plan["assignment"]) == 12


def test_seeds_choose_among_random_plans(solved: Any) -> None:
    plans = {tuple(solved("off_rand", CHAIN, "--seed", str(s))["assignment"]) for s in range(8)}
    assert len(plans) > 1
    again = solved("off_rand", CHAIN, "--param", "seed=5")["assignment"]
    assert again == solved("off_rand", CHAIN, "--seed", "5")["assignment"]


def test_a_parameter_overrules_the_problem(solved: Any) -> None:
    """So that one file serves a sweep; what only the file says holds for online algorithms too."""
    loose = CHAIN | {"nu": 1.0}
    assert solved("ic", loose)["max_load"] == 8
    assert solved("ic", loose, "--param", "nu=0")["max_load"] == 4
    assert solved("least_cost", loose, "--param", "alpha=0")["max_load"] == 8


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        ("", "is not JSON"),
        ('{"rates": {"A": NaN}, "queries": [["A"]], "servers": 1}', "NaN"),
        ('{"rates": {"A": 1, "A": 2}, "queries": [["A"]], "servers": 1}', "twice"),
        (SMALL | {"rates": {"A": -1, "B": 1}}, "rates.A: must be finite and not negative, not -1"),
        (SMALL | {"queries": [["A"], []]}, "queries[1]: reads no source"),
        (SMALL | {"queries": [["Z"]]}, "queries[0]: reads source 'Z', which has no rate"),
        (SMALL | {"queries": [["two\nlines"]]}, "which has no rate"),
        (SMALL | {"queries": [["x" * 5_000]]}, "..."),
        (SMALL | {"servers": 0}, "servers: must be at least 1, not 0"),
        (SMALL | {"nu": -1}, "nu: must be at least 0, not -1"),
        (SMALL | {"nu": "x"}, "nu: must be a number"),
        (CHAIN | {"servers": 3, "nu": 0}, "8 queries do not fit on 3 servers"),
        ([SMALL], "must be a JSON object"),
    ],
)
def test_a_bad_problem_is_one_line(refused: Any, tmp_path: Path, problem: Any, why: str) -> None:
    line = refused("placement", "ic", "--input", written(tmp_path, problem))
    assert why in line
    assert len(line) < 700


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--param", "nu"], "must be NAME=VALUE"),
        (["--param", "=1"], "must be NAME=VALUE"),
        (["--param", "nu=x"], "nu: must be a number, not 'x'"),
        (["--param", "nu=-1"], "nu: must be at least 0"),
        (["--param", "nu=nan"], "nu: must be a number"),
        (["--param", "beta=1"], "beta: is not a parameter of off_rand; known: nu, seed"),
        (["--param", "nu=1", "--param", "nu=2"], "nu: is given twice"),
        (["--param", "seed=1", "--seed", "1"], "seed: is given twice"),
        (["--param", "seed=1.5"], "seed: must be a whole number"),
        (["--param", "seed=" + "9" * 400], "seed: must be a whole number"),
        (["--seed", "x"], "seed: must be a whole number"),
        (["--seed", "-1"], "seed: must be at least 0"),
        (["--speed"], "unrecognized arguments: --speed"),
    ],
)
def test_a_bad_parameter_is_one_line(
    refused: Any, tmp_path: Path, more: list[str], why: str
) -> None:
    assert why in refused("placement", "off_rand", "--input", written(tmp_path, SMALL), *more)


def test_algorithms_without_chance_check_the_seed_too(refused: Any, tmp_path: Path) -> None:
    path = written(tmp_path, SMALL)
    assert "seed: must be" in refused("placement", "ic", "--input", path, "--seed", "x")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "required"),
        (["teleport"], "teleport"),
        (["placement", "ic"], "--input"),
        (["placement", "best", "--input", "-"], "known: "),
        (["placement", "ic", "--input", "none.json"], "none.json: cannot be read: No such file"),
        (["list", "more"], "unrecognized"),
    ],
)
def test_a_bad_call_is_one_line(refused: Any, arguments: list[str], why: str) -> None:
    assert why in refused(*arguments)


def test_progress_is_told_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["placement", "ic", "--progress", "--input", written(tmp_path, CHAIN)]) == 0
    out, err = capsys.readouterr()
    told = [int(line.removesuffix(" %")) for line in err.splitlines()]
    assert told == sorted(set(told))
    assert told[-1] == 100
    assert json.loads(out)["traffic"] == 5


def test_the_list_names_every_planner_and_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    for planner in PLANNERS:
        assert f"{planner.name}: {planner.title}" in shown
        assert all(f"  {one.name} ({one.kind})" in shown for one in planner.algorithms)


def test_the_list_is_json_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    names = [one["name"] for one in json.loads(capsys.readouterr().out)["planners"]]
    assert names == [one.name for one in PLANNERS]


def started(*arguments: str, **more: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*HEARING, sys.executable, "-m", "algorithms.lab", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def test_a_process_reads_standard_input() -> None:
    process = started("placement", "ic", "--input", "-", stdin=subprocess.PIPE)
    out, err = process.communicate(json.dumps(SMALL))
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["traffic"] == 3.0


def test_a_process_exits_2_on_bad_input() -> None:
    process = started("placement", "ic", "--input", "-", stdin=subprocess.PIPE)
    out, err = process.communicate("{")
    assert (process.returncode, out) == (2, "")
    assert err.startswith("algorithms: standard input: is not JSON")
    assert err.count("\n") == 1


def test_an_interrupted_process_exits_130(tmp_path: Path) -> None:
    names = [str(number) for number in range(40)]
    pairs = {"rates": dict.fromkeys(names, 1), "queries": list(combinations(names, 2))}
    path = written(tmp_path, pairs | {"servers": 4})
    long = ["--param", "seconds=600", "--param", "sweeps=1000000", "--progress"]
    process = started("placement", "refined", "--input", path, *long)
    assert process.stderr is not None
    assert process.stderr.readline().endswith("%\n")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_a_reader_that_goes_away_is_no_error() -> None:
    """`python -m algorithms list | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [sys.executable, "-m", "algorithms.lab", "list"],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (process.returncode, process.stderr) == (141, b"")


def test_listing_loads_no_framework() -> None:
    """Someone who only wants to look waits for no Spark, pandas or Django."""
    code = (
        "import sys; from algorithms.lab.__main__ import main; main(['list']); "
        "print({'django', 'pandas', 'pyarrow', 'pyspark', 'plotly', 'mtkahypar'} & set(sys.modules)"
        ", file=sys.stderr)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert process.stderr == b"set()\n"
