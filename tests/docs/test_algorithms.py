"""Every example of docs/algorithms.md is run, and its tables are those of the registry."""

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from algorithms.lab.__main__ import main
from docs.algorithm_tables import MARK, PAGE, tables

TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the page's problem.json."""
    (tmp_path / "problem.json").write_text(next(body for kind, body in BLOCKS if kind == "json"))
    return tmp_path


def commands() -> list[tuple[str, str]]:
    """Return each command with the JSON that stands below it, or nothing."""
    after = [*BLOCKS[1:], ("", "")]
    return [
        (body, expected if kind == "json" else "")
        for (language, body), (kind, expected) in zip(BLOCKS, after, strict=True)
        if language == "sh"
    ]


# Keeps what the page's `python` is given: twenty starts of Python would take most of the time. The
# last command of a pipeline counts in the shell itself.
RECORDER = """shopt -s lastpipe; calls=0
python() { calls=$((calls + 1)); printf '%s\\0' "$@" > call$calls; cat > input$calls; }
"""
# The Python that runs the tests.
PYTHON = f'python() {{ {shlex.quote(sys.executable)} "$@"; }}\n'


def ran(folder: Path, script: str) -> str:
    """Return what a script prints in the folder."""
    environment = os.environ | {"PYTHONPATH": str(PAGE.parents[1])}
    done = subprocess.run(
        ["bash", "-ec", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def recorded_calls(folder: Path, command: str) -> Iterator[tuple[list[str], Path]]:
    """Yield the words of each call of `python -m algorithms.lab`, and the file of its input."""
    ran(folder, RECORDER + command)
    calls = sorted(folder.glob("call*"))
    assert len(calls) == command.count("python ") > 0
    for call in calls:
        module, *words = call.read_text().removesuffix("\0").split("\0")[1:]
        assert module == "algorithms.lab"
        yield words, folder / call.name.replace("call", "input")


@pytest.mark.nightly("lab")
@pytest.mark.parametrize(("command", "expected"), commands())
def test_commands_print_what_the_page_says(
    folder: Path,
    command: str,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "python -c" in command:
        printed = ran(folder, PYTHON + command)
    else:
        monkeypatch.chdir(folder)
        for words, given in recorded_calls(folder, command):
            with given.open() as read:
                monkeypatch.setattr("sys.stdin", read)
                assert main(words) == 0
        printed, complaints = capsys.readouterr()
        assert complaints == ""
    if expected:
        found, shown = json.loads(printed), json.loads(expected)
        assert found.pop("seconds", 0) >= 0
        assert shown.pop("seconds", 0) >= 0
        assert found == shown


def test_python_gives_what_the_page_says() -> None:
    """All blocks together, each building on those before it."""
    code = "\n".join(body for language, body in BLOCKS if language == "python")
    example = doctest.DocTestParser().get_doctest(code, {}, PAGE.name, str(PAGE), 0)
    assert len(example.examples) > 20
    report: list[str] = []
    doctest.DocTestRunner().run(example, out=report.append)
    assert not report, "".join(report)


def test_the_tables_are_those_of_the_registry() -> None:
    """`python docs/algorithm_tables.py` writes them anew."""
    assert TEXT[TEXT.index(MARK) + len(MARK) :] == tables()
