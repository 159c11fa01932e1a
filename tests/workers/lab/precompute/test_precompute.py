"""Learning on a real Spark session: the same values as without, kept, found again, refused."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from algorithms.errors import BadProblem
from algorithms.lab.__main__ import main as door
from algorithms.lab.migration.formats import foreseen_from_json
from algorithms.lab.migration.future.planners import Mtm
from tests.support.signals import HEARING
from workers.lab.precompute.__main__ import Store, main

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("class_archive")]
PROBLEM: dict[str, Any] = {
    "starts": [0, 13],
    "work": [1] * 20,
    "state": [1] * 20,
    "nodes": 3,
    "history": [2, 3, 4, 3, 2, 3, 2],
}


def run(folder: Path, *more: str, problem: Any = None) -> int:
    path = folder / "problem.json"
    path.write_text(json.dumps(PROBLEM if problem is None else problem))
    store = str(folder / "kept")
    fixed = ["--input", str(path), "--store", store, "--master", "local[2]", "--rounds", "1"]
    return main([*fixed, *more])


@pytest.mark.nightly("lab")
def test_values_are_learned_on_spark_kept_and_used(tmp_path: Path, capsys: Any) -> None:
    assert run(tmp_path) == 0
    out, err = capsys.readouterr()
    assert "100%" in err
    kept = Path(out.strip())
    found = Store(tmp_path / "kept").get(kept.stem)
    assert found is not None
    foreseen = foreseen_from_json(PROBLEM, 0.4)
    here: Any = Mtm(method="learned", rounds=1).projection(foreseen)
    assert found.to_json() == here.to_json()
    # A second call finds the file and begins no Spark.
    assert run(tmp_path, "--master", "nowhere://") == 0
    assert capsys.readouterr().out.strip() == str(kept)
    # The planner takes it from the problem.
    problem = PROBLEM | {"projection": json.loads(kept.read_text())}
    (tmp_path / "with.json").write_text(json.dumps(problem))
    assert door(["migration", "mtm", "--input", str(tmp_path / "with.json")]) == 0
    assert json.loads(capsys.readouterr().out)["feasible"]


@pytest.mark.nightly("lab")
def test_ctrl_c_keeps_nothing(tmp_path: Path) -> None:
    """The session is stopped in the middle of its rounds, and no file is left behind."""
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(PROBLEM | {"tau": 0.8}))
    store = tmp_path / "kept"
    options = ["--input", str(path), "--store", str(store), "--master", "local[2]"]
    with subprocess.Popen(
        [*HEARING, sys.executable, "-m", "workers.lab.precompute", *options, "--rounds", "100"],
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        lines = iter(running.stderr)
        assert any(line.startswith("precompute: ") for line in lines)
        running.send_signal(signal.SIGINT)
        assert "precompute: cancelled; nothing was kept\n" in lines
        assert running.wait(60) == 130
    assert not list(store.glob("*.json*"))


@pytest.mark.parametrize(
    ("problem", "word"), [(PROBLEM | {"work": []}, "work"), ({}, "lacks"), ([], "object")]
)
def test_bad_input_is_one_line(tmp_path: Path, capsys: Any, problem: Any, word: str) -> None:
    assert run(tmp_path, problem=problem) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert word in err
    assert not (tmp_path / "kept").exists()


def test_an_unreadable_file_is_not_taken_for_a_projection(tmp_path: Path) -> None:
    (tmp_path / "k.json").write_text('{"key": "k"}')
    with pytest.raises(BadProblem, match="projection"):
        Store(tmp_path).get("k")
