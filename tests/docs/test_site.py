"""The site of the documentation is built without a warning; its samples of code can be read."""

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config

from controlplane.cli.parser import parser
from tests.controlplane.cli.test_operations import DOCUMENT
from tests.docs.test_paths import PAGES, ROOT
from tests.docs.test_samples import samples

COMMAND: Final = re.compile(r"^(?:\$ )?(weir (?!=).*)$", re.MULTILINE)


class Links(HTMLParser):
    """The anchors of a page, its links, and what a browser loads with it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.links += [given[name] for name in ("href", "src") if name in given]
        if "src" in given or (tag == "link" and "stylesheet" in given.get("rel", "")):
            self.loaded.append(given.get("src") or given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, which fails with a page or link that leads nowhere."""
    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def test_links_of_the_site_lead_to_its_files_and_sections(site: Path) -> None:
    pages = {path: Links(path) for path in site.rglob("*.html")}
    dead = []
    for path, page in pages.items():
        # The page of errors is served from any folder.
        for parts in map(urlsplit, page.links if path.name != "404.html" else ()):
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            found = (
                pages[target].anchors if target in pages else {""} if target.is_file() else set()
            )
            if not parts.netloc and parts.fragment not in found:
                dead.append(f"{path.relative_to(site)}: {parts.geturl()}")
    assert dead == []
    assert {path.stem for path in pages} >= {"index", "changelog", "kubernetes"}
    # Browsers load nothing from elsewhere.
    assert [url for page in pages.values() for url in page.loaded if urlsplit(url).netloc] == []


def _shell(text: str) -> None:
    subprocess.run(["sh", "-n"], input=text, text=True, check=True, capture_output=True)


READERS: Final[dict[str, Callable[[str], Any]]] = {
    "json": json.loads,
    "yaml": yaml.safe_load,
    "python": lambda text: compile(text, "sample", "exec"),
    "sh": _shell,
}


@cache
def commands() -> Any:
    return parser(DOCUMENT)


@pytest.mark.parametrize("page", [page for page in PAGES if any(samples(page))])
def test_samples_are_of_their_language_and_name_commands_that_exist(page: str) -> None:
    """`test_samples.py` runs those that a test can run."""
    for language, text in samples(page):
        # Sessions of doctest are run.
        if language in READERS and not text.startswith(">>>"):
            READERS[language](text)
        for line in COMMAND.findall(text.replace("\\\n", " ")):
            for command in re.split(r" && (?=weir )", line):
                words = shlex.split(re.split(r" [>|#&] ?| 2>| && ", command)[0], comments=True)
                commands().parse_args(words[1:])
