"""Files and sections that the documentation names exist; decisions may name former ones."""

import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from docs.site_pages import anchor

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = (
    "algorithms",
    "benchmarks",
    "controlplane",
    "dashboard",
    "docs",
    "tests",
    "workers",
)
PAGES: Final = (
    "README.md",
    *(
        path.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.md"))
        if "decisions" not in path.parts
    ),
)
MODULE: Final = re.compile(r"`([\w./-]+\.py)`")
LINK: Final = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")


@cache
def modules() -> list[str]:
    """Return the paths of all modules, with a leading slash."""
    return [
        f"/{path.relative_to(ROOT).as_posix()}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    ]


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    return {anchor(text) for text in re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES)
def test_modules_that_a_page_names_exist(page: str) -> None:
    """A page names a module by its path or by the end of it."""
    named = MODULE.findall((ROOT / page).read_text())
    unknown = {name for name in named if not any(path.endswith(f"/{name}") for path in modules())}
    assert not unknown - {"manage.py"}


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_to_files_and_sections(page: str) -> None:
    source = ROOT / page
    dead = []
    for name, section in LINK.findall(source.read_text()):
        target = (source.parent / name).resolve() if name else source
        if not target.exists() or (section and section not in anchors(target)):
            dead.append(f"{name}#{section}")
    assert not dead
