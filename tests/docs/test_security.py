"""The page about security names tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "security.md").read_text()
TEST: Final = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
ROWS: Final = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if re.match(r"\| \d", line)
]


@cache
def defined_in(path: str) -> set[str]:
    """Return the names of the tests in a module, none if it does not exist."""
    file = ROOT / path
    if not file.exists():
        return set()
    nodes = ast.walk(ast.parse(file.read_text()))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in nodes if isinstance(node, kinds) and "test_" in node.name}


def test_every_named_test_exists() -> None:
    named = TEST.findall(PAGE)
    assert len(named) > 50
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (name in defined_in(path) if name else (ROOT / path).exists())
    ]
    assert missing == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_an_item_has_a_proof_or_says_what_is_missing(row: list[str]) -> None:
    items, level, requirement, holds, shown = row
    assert re.fullmatch(r"\d+\.\d+\.\d+(, \d+\.\d+\.\d+)*", items)
    assert level in {"1", "2"}
    assert requirement
    assert holds in {"yes", "partly", "no"}
    if holds == "yes":
        assert TEST.search(shown) or "](" in shown
    else:
        assert TEST.sub("", shown).strip(" ,;"), "what is missing"


def test_an_item_has_one_row() -> None:
    items = [item for row in ROWS for item in row[0].split(", ")]
    assert len(items) == len(set(items)) > 120
