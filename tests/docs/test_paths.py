"""Files that the documentation names exist; decisions may name what was there then."""

import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    "README.md",
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
)
FOLDERS: Final = (
    "algorithms",
    "benchmarks",
    "controlplane",
    "dashboard",
    "docs",
    "tests",
    "workers",
)
MODULE: Final = re.compile(r"`([\w./-]+\.py)`")


@cache
def modules() -> list[str]:
    """Return the paths of all modules, with a leading slash."""
    return [
        f"/{path.relative_to(ROOT).as_posix()}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    ]


@pytest.mark.parametrize("page", PAGES)
def test_modules_that_a_page_names_exist(page: str) -> None:
    """A page names a module by its path or by the end of it."""
    named = MODULE.findall((ROOT / page).read_text())
    unknown = {name for name in named if not any(path.endswith(f"/{name}") for path in modules())}
    assert not unknown - {"manage.py"}
