"""Every measure of the pages has a definition; the tag shows it as a button, or inside a link."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from django.test import Client

from controlplane.alerts.measures import KINDS
from controlplane.models import Cluster
from controlplane.planning.adapters import all_measures
from dashboard.glossary import MEASURES, WORDS, term_of
from dashboard.proposals.measure_rows import LEDGER
from dashboard.templatetags.terms import term
from tests.dashboard.conftest import browser_of
from tests.support import cluster as made
from tests.support.pages import page_world

GLOSSARY: Final = Path(__file__).parents[2] / "docs/glossary.md"
# Labels of numbers that are not measures: counts and sizes of things that the page names,
# positions, moments, values beside a measure that has its label in the same row, and columns of
# people.
_PLAIN: Final = {
    "Actions", "As proposed", "Approved", "Attempts", "Batch", "Before", "Computed", "Computed by",
    "Difference", "Duration", "Expected for applied", "Failures", "Failures in succession", "For",
    "Index", "Limit", "Live queries", "Measured", "Measured, 1 h", "Newest message", "No.", "Now",
    "Now records/s", "Number", "Oldest waits", "Per second", "Plans", "Position", "Queries",
    "Read", "Records lost", "Running sum", "Size", "Starts within s", "State", "Status", "Steps",
    "Streams", "Sum", "Takes", "Takes at most s", "Times", "Took", "Value", "Waiting",
    "Waiting tasks", "Will happen", "Written", "± µs",
}  # fmt: skip
_TILE: Final = re.compile(
    r'class="tile\b[^>]*>\s*<span class="name">(.*?)</span>\s*<span class="value"', re.DOTALL
)
_COLUMN: Final = re.compile(r'<th\b[^>]*class="num[^>]*>(.*?)</th>', re.DOTALL)
_FRAGMENT: Final = re.compile(r'hx-get="([^"]+)"[^>]*hx-trigger="[^"]*\b(?:load|revealed)\b')
# Columns of data: their names are those of a person's query, or of the Lab's series.
_DATA: Final = ("windows", "preview", "lab-run", "query", "query of one task", "api")


def test_declared_measures_have_a_definition() -> None:
    titles = {kind.title for kind in KINDS.values()}
    titles |= {measure.title for measure in all_measures().values()}
    titles |= {title for title, *_ in LEDGER.values()}
    assert {title for title in titles if term_of(title) is None} == set()


def test_labels_of_all_pages_have_a_definition(db: None, redis_url: str) -> None:
    """Tiles and columns of numbers, also of the parts that pages load."""
    admin = made.actor("admin")
    pages = page_world(admin)
    client = browser_of(admin)
    without = {
        f"{page.name}: {label}"
        for page in pages
        for label in _unexplained(client, page.path)
        if page.name not in _DATA
    }
    assert without == set()


def _unexplained(client: Client, path: str) -> Iterator[str]:
    """Yield the labels of a page and of the parts that it loads that have no definition."""
    html = client.get(path).content.decode()
    parts = [
        client.get(part.replace("&amp;", "&"), headers={"HX-Request": "true"}).content.decode()
        for part in _FRAGMENT.findall(html)
    ]
    for text in (html, *parts):
        for pattern in (_TILE, _COLUMN):
            yield from (
                label
                for inner in pattern.findall(text)
                if "data-term=" not in inner and (label := _words(inner)) not in _PLAIN
            )


def _words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).replace("&nbsp;", " ").split())


@pytest.mark.parametrize("path", ["", "nodes/0/"])
def test_pages_have_tooltips(operating: Client, sf: Cluster, path: str) -> None:
    html = operating.get(f"/clusters/sf/{path}").content.decode()
    assert html.count("data-term=") >= 10


def test_no_label_has_two_definitions() -> None:
    labels = [label.lower() for word in WORDS for label in {word.word, *word.labels}]
    folded = {word.word.lower() for word in WORDS}
    assert len(folded) == len(WORDS)
    twice = {label for label in labels if labels.count(label) > 1}
    assert all(term_of(label) is not None and label in folded for label in twice), twice


def test_the_documentation_has_each_measure() -> None:
    """The words of the tooltips are those of docs/glossary.md."""
    text = GLOSSARY.read_text()
    assert [word.word for word in MEASURES if f"\n| {word.word} | {word.text} |" not in text] == []


def test_a_label_is_a_button_unless_a_link_contains_it() -> None:
    assert term("Imbalance").startswith('<button type="button" class="term" data-term="')
    assert term("Imbalance", in_link=True).startswith('<span class="term" data-term="')
    assert term("Load of node 3", of="Load").endswith(">Load of node 3</button>")
    assert term("<Rows>") == "&lt;Rows&gt;"
