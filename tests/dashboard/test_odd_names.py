"""Pages about streams, columns, queries, nodes and figures whose names mean something to a program.

In a template `mapping.items` is first the value of a name `items`; in a script `object[name]` may
be a method.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from django.test import Client

import dashboard
from controlplane.access.roles import Actor
from controlplane.models import AttachedQuery, Cluster, Node, Query, Stream
from controlplane.queries.spec import QuerySpec
from controlplane.topology import queries, streams
from controlplane.topology.streams import StreamSpec
from controlplane.wire.query_text import QueryText
from dashboard.templatetags.weir import pairs
from tests.dashboard.conftest import browser_of
from tests.support import cluster as made
from tests.support.pages import PageAddress, page_world

pytestmark = pytest.mark.nightly("pages")

# Methods of dictionaries, variables of templates, members of every object of a script.
WORDS: Final = (
    "items", "keys", "values", "get", "count", "update", "pop", "copy", "clear", "forloop", "block",
    "csrf_token", "constructor", "__proto__", "toString", "hasOwnProperty", "None", "True",
    "length",
)  # fmt: skip
# What is not a word, where a name may be anything.
OTHERS: Final = (
    "<script>alert(1)</script>", "\"'`&amp;", "a\nb\tc", "\u202egnp.exe", "\U0001f680", "\u200b",
    "x" * 100, "{{ 1 }}{% x %}", "%(a)s%s", "0",
)  # fmt: skip
TEMPLATES: Final = Path(dashboard.__file__).parent
METHODS: Final = "|".join(name for name in dir(dict) if not name.startswith("_"))
EXPRESSION: Final = re.compile(rf"[\w.]+\.(?:{METHODS})\b")
# Attributes of objects that are not dictionaries.
ATTRIBUTES: Final = {
    "size.items", "field.values", "filter.values", "table.keys", "table.values", "row.keys",
    "row.values", "key.keys",
}  # fmt: skip


def expressions() -> Iterator[tuple[str, str]]:
    """Yield each expression of a template that ends like a method of dictionaries."""
    for path in sorted(TEMPLATES.rglob("*.html")):
        for tag in re.findall(r"\{[{%](.*?)[}%]\}", path.read_text()):
            for expression in EXPRESSION.findall(re.sub(r'"[^"]*"', "", tag)):
                yield path.name, expression


def test_no_template_calls_a_method_of_a_dictionary() -> None:
    """A name of a user would be found in its place: the filter `pairs` reads all names."""
    found = list(expressions())
    assert {expression for _, expression in found} <= ATTRIBUTES, found
    assert pairs({"items": 1, "b": 2}) == [("items", 1), ("b", 2)]
    assert pairs(None) == pairs("ab") == []


@pytest.fixture
def world(operator: Actor) -> list[PageAddress]:
    """Pages of a cluster in which everything has an odd name."""
    pages = page_world(operator)
    cluster = Cluster.objects.get()
    columns = [{"name": name, "type": "int64"} for name in WORDS]
    schema = {"columns": columns}
    named = [word for word in WORDS if not word.startswith("_")]
    streams.register(
        operator,
        cluster,
        [
            StreamSpec(name, name, schema, meta=dict.fromkeys((*WORDS, *OTHERS), 1))
            for name in named
        ],
    )
    text = QueryText({name: f'sum("{name}")' for name in WORDS[:6]}, key=("length", "toString"))
    rows = [QuerySpec(name, (name,), text=text) for name in named]
    queries.submit_many(operator, cluster, rows)
    for node, name in zip(cluster.nodes.all(), (*OTHERS, *WORDS), strict=False):
        Node.objects.filter(pk=node.pk).update(name=name)
    figures = dict.fromkeys((*WORDS, *OTHERS), 1.0)
    source = {"description": OTHERS[0], "rows": 1, "metrics": figures}
    AttachedQuery.objects.update(sources=[source], last=PROGRESS | {"phases": figures})
    Query.objects.filter(name="values").update(state="failed", fault=FAULT)
    base = f"/clusters/{cluster.slug}"
    pages += [PageAddress(row.name, f"{base}/streams/{row.pk}/") for row in chosen(Stream)]
    pages += [PageAddress(row.name, f"{base}/queries/{row.pk}/") for row in chosen(Query)]
    return pages


PROGRESS: Final = {
    "t": 1, "batch": 1, "rows": 1, "input": 1.0, "processed": 1.0, "duration_ms": 1, "phases": {},
    "state_rows": None, "state_bytes": None, "state_dropped": None, "watermark_ms": None,
    "lags": [1],
}  # fmt: skip
FAULT: Final = {"why": "x", "stage": "y", "sample": [dict.fromkeys(WORDS, 1), [1], "text"]}


def chosen(model: type[Stream] | type[Query]) -> list[Stream | Query]:
    return list(model.objects.filter(name__in=("items", "constructor", "values")))


def test_every_page_shows_odd_names(world: list[PageAddress], operator: Actor) -> None:
    """No name is taken for a method or for markup."""
    browser = browser_of(made.actor("admin", "the-admin"))
    browser.raise_request_exception = False
    for page in world:
        answer = browser.get(page.path)
        assert answer.status_code in (200, 302), (page, answer.status_code)
        assert b"<script>alert" not in answer.content, page
    form = browser.get("/clusters/sf/queries/new/?streams=items")
    assert offered(form.content.decode()) >= {f"{name} int" for name in WORDS}


def offered(page: str) -> set[str]:
    """Return the columns with their kinds that a page offers to a query."""
    listed = re.search(r'data-columns="([^"]*)"', page)
    assert listed is not None, page
    return {entry.strip() for entry in listed[1].split(",")}


def test_the_form_of_a_query_reads_odd_columns(world: list[PageAddress], operating: Client) -> None:
    """All columns are offered, and a text over them is accepted."""
    aggregates = "\n".join(f'{name} = sum("{name}")' for name in WORDS[:6])
    sent = {
        "name": "new-one",
        "streams": "items",
        "aggregates": aggregates,
        "key": "length",
        "field": "text",
    }
    answer = operating.post("/clusters/sf/queries/check/", sent)
    assert answer.status_code == 200
    assert offered(answer.content.decode()) >= {"items int", "keys int", "__proto__ int"}
