"""The columns of the demo's records are named by the demo alone.

Weir takes records of any columns, so no declaration, example or form of the product names these.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from controlplane.api import api
from workers.demo.recording import REPORT

ROOT: Final = Path(__file__).parents[1]
DEMO: Final = frozenset(REPORT.arrow.names)
PRODUCT: Final = ("algorithms", "controlplane", "dashboard", "workers")
# The demo has declarations of its own.
ELSEWHERE: Final = ROOT / "workers" / "demo"
PAGES: Final = sorted((ROOT / "docs").glob("*.md"))
MEASURED: Final = "benchmarks.md"
# Between marks of code x and y are any two values; these three are columns wherever they occur.
TELLING: Final = DEMO - {"x", "y"}
PLACEHOLDER: Final = re.compile(r"placeholder=(?:\"([^\"]*)\"|'([^']*)')")
CODE: Final = re.compile(r"^```\w*\n(.*?)^```|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
KEY: Final = "example"


def words(text: str) -> set[str]:
    """Return the names in a text; an option such as --speed is none."""
    return set(re.findall(r"(?<![-\w])[a-z_]\w*", text))


def modules() -> Iterator[Path]:
    """Yield the modules of the product without the demo's."""
    for room in PRODUCT:
        for path in (ROOT / room).rglob("*.py"):
            if not path.is_relative_to(ELSEWHERE):
                yield path


def declared(tree: ast.AST) -> Iterator[str]:
    """Yield the names of columns that a module declares as constants.

    Declarations are `ColumnSpec("name", …)` and `{"name": "name", "type": …}`.
    """
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="ColumnSpec"), args=[ast.Constant(value=str(name)), *_]):
                yield name
            case ast.Dict(keys=keys, values=values):
                pairs = {
                    key.value: value
                    for key, value in zip(keys, values, strict=True)
                    if isinstance(key, ast.Constant)
                }
                said = pairs.get("name")
                if "type" in pairs and isinstance(said, ast.Constant):
                    yield str(said.value)


def examples(value: Any, within: bool = False) -> Iterator[str]:
    """Yield the names and texts in all examples of an OpenAPI document."""
    if isinstance(value, dict):
        for key, one in value.items():
            if within:
                yield key
            yield from examples(one, within or key in (KEY, f"{KEY}s"))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from examples(one, within)
    elif within and isinstance(value, str):
        yield value


def test_the_demo_alone_declares_its_columns() -> None:
    parsed = {path: ast.parse(path.read_text(encoding="utf-8")) for path in modules()}
    assert len(parsed) > 500
    named = {path.name: DEMO.intersection(declared(tree)) for path, tree in parsed.items()}
    assert {path: columns for path, columns in named.items() if columns} == {}


def test_declarations_are_recognised() -> None:
    """The check above cannot pass because it sees nothing: it sees the demo's own."""
    schema = ROOT / "workers" / "demo" / "recording.py"
    assert set(declared(ast.parse(schema.read_text(encoding="utf-8")))) == DEMO


def test_no_example_of_the_api_has_them() -> None:
    shown = list(examples(api.get_openapi_schema(path_prefix="api/v1/")))
    assert "placed_at" in shown
    assert {text for text in shown if words(text) & DEMO} == set()


def test_no_placeholder_of_a_form_has_them() -> None:
    shown: list[str] = []
    for path in (ROOT / "dashboard").rglob("*.html"):
        found = PLACEHOLDER.findall(path.read_text(encoding="utf-8"))
        shown += [double or single for double, single in found]
    assert len(shown) > 10
    assert [text for text in shown if words(text) & DEMO] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != MEASURED], ids=str)
def test_no_code_of_the_documentation_has_them(page: Path) -> None:
    """Benchmarks measure the demo's recorded data, and say of which columns."""
    found = [block or mark for block, mark in CODE.findall(page.read_text(encoding="utf-8"))]
    assert [code for code in found if words(code) & TELLING] == []
