"""The planners as a library: numpy and numba are enough, and what needs more says so."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from algorithms.lab.registry import PLANNERS
from tests.docs.test_algorithms import TEXT, commands, recorded_calls

ROOT: Final = Path(__file__).parents[3]
# Refuses every installed distribution but these, as where they alone are installed.
ALONE: Final = """
import io, json, sys, traceback
from importlib.metadata import packages_distributions

OWN = {"numpy", "numba", "llvmlite", "algorithms"}
OTHERS = set(packages_distributions()) - OWN - set(sys.stdlib_module_names)

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in OTHERS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from algorithms.lab.__main__ import main

ended = []
for words, given in json.load(sys.stdin):
    sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode()))
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    try:
        code = main(words)
    except Exception:
        code = 1
        traceback.print_exc()
    ended.append((code, sys.stdout.getvalue(), sys.stderr.getvalue()))
print(json.dumps(ended), file=sys.__stdout__)
"""


def alone(*calls: tuple[list[str], str]) -> list[tuple[int, str, str]]:
    """Return exit code, output and errors of calls in a process with numpy and numba alone."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE], input=json.dumps(calls), capture_output=True, text=True,
        check=False, cwd=ROOT,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


def test_the_planners_are_listed() -> None:
    (as_json, as_text) = alone((["list", "--json"], ""), (["list"], ""))
    names = [row["name"] for row in json.loads(as_json[1])["planners"]]
    assert names == [planner.name for planner in PLANNERS]
    assert (as_text[0], as_text[2]) == (0, "")


def test_each_documented_command_works_or_names_what_it_needs(tmp_path: Path) -> None:
    """The page says for which planners and algorithms another package is necessary."""
    needed = dict(re.findall(r"^\| `([a-z_ ]+)` \| `([a-z]+)` \|$", TEXT, re.MULTILINE))
    (tmp_path / "problem.json").write_text(next(
        body for kind, body in re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
        if kind == "json"
    ))  # fmt: skip
    calls = []
    for number, (command, _) in enumerate(commands()):
        if "list" in command or "python -c" in command:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "problem.json").write_bytes((tmp_path / "problem.json").read_bytes())
        for words, given in recorded_calls(folder, command):
            places = [str(folder / word) if word == "problem.json" else word for word in words]
            calls.append((places, given.read_text()))
    assert len(calls) > 10
    found = {}
    for (words, _), (code, _, err) in zip(calls, alone(*calls), strict=True):
        if code:
            match = re.fullmatch(r"algorithms: this algorithm needs the package (\w+): .*\n", err)
            assert match is not None, (words, err)
            found[f"{words[0]} {words[1]}"] = match[1]
    assert found == needed
