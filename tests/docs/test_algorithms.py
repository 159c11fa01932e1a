"""Every example of docs/algorithms.md is run, and its tables are those of the registry."""

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(("command", "expected"), commands())
def test_commands_print_what_the_page_says(folder: Path, command: str, expected: str) -> None:
    # The page's `python` is the one that runs the tests.
    script = f'python() {{ {shlex.quote(sys.executable)} "$@"; }}\n{command}'
    environment = os.environ | {"PYTHONPATH": str(PAGE.parents[1])}
    ran = subprocess.run(
        ["bash", "-ec", script], cwd=folder, env=environment, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    if expected:
        found, shown = json.loads(ran.stdout), json.loads(expected)
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
