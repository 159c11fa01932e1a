"""A column of a list is declared once, and the list has it everywhere."""

import json
from dataclasses import dataclass
from typing import Final

from django.db.models import Q
from django.template import Context, Template
from django.test import RequestFactory

from controlplane.access.roles import Actor
from controlplane.api.common.schemas import listed_columns_of
from controlplane.lists.export import csv_parts, json_parts
from controlplane.lists.kinds import KINDS, ListKind, ListScope
from controlplane.models import Cluster
from controlplane.pagination.columns import FieldKind, order_names, orders_of, stored
from controlplane.pagination.listing import Filters, Listing, choice_filter, selected, text_filter
from dashboard.glossary import FIGURES, term_of
from dashboard.lists.page import filter_bar

COLUMNS: Final = (
    stored("slug", "name in addresses", "name", title="Cluster", is_ordered=True, place=2),
    stored("alpha", "cost of a move", "cost", unit="bytes", title="Cost of moves",
           kind=FieldKind.NUMBER, is_figure=True, is_ordered=True, first="-", in_file="cost_bytes",
           place=1),
)  # fmt: skip
TABLE: Final = (
    "{% load lists %}{% for column in kind.shown %}{% head column %}{% endfor %}"
    "{% for column in kind.shown %}{% cell column row %}{% endfor %}"
)


@dataclass(frozen=True)
class _Filters(Filters):
    order: str = choice_filter("order", lambda: order_names(COLUMNS))
    filter: str = text_filter("filter")


def _listing(_cluster: None, filters: _Filters) -> Listing[Cluster, Cluster]:
    rows = selected(Cluster.objects.all(), filters, COLUMNS, lambda word: Q(slug=word))
    column = orders_of(COLUMNS)[filters.order.removeprefix("-")]
    return Listing(rows, (f"-{column}", "pk"), list, filters)


KIND: Final = ListKind("clusters", "clusters", COLUMNS, (), _Filters, _listing)


def test_a_declared_column_is_everywhere(operator: Actor, rf: RequestFactory) -> None:
    for slug, alpha in (("a", 1.0), ("b", 3_000.0), ("c", 2.0)):
        Cluster.objects.create(slug=slug, name=slug, slots=1, splits=1, alpha=alpha)
    listing = KIND.rows(ListScope(operator), {"filter": "cost>1", "order": "-cost"})
    # Files.
    assert next(csv_parts(listing, COLUMNS)).strip() == "slug,cost_bytes"
    rows = json.loads("".join(json_parts(listing, COLUMNS)))["rows"]
    assert rows == [{"slug": "b", "cost_bytes": 3_000.0}, {"slug": "c", "cost_bytes": 2.0}]
    # API and command line.
    schema = listed_columns_of(Cluster, COLUMNS)
    assert schema.model_fields["alpha"].description == "cost of a move (bytes)"
    assert schema.model_fields["alpha"].annotation is float
    assert schema.json_schema()["x-columns"] == ["alpha", "slug"]
    assert schema.from_orm(listing.page.rows[0]).alpha == 3_000.0
    # Table and help.
    context = {"request": rf.get("/?order=-cost"), "kind": KIND, "row": listing.page.rows[0]}
    table = Template(TABLE).render(Context(context))
    assert 'aria-sort="descending"><a href="?order=cost">Cost of moves</a>' in table
    assert '<td class="num " data-label="Cost of moves">3.0 kB</td>' in table
    help_ = {field.name: field for field in filter_bar(KIND, "").fields}["cost"]
    assert (help_.title, help_.values) == ("cost of a move", "number (bytes)")


def test_figures_without_a_word_of_their_own_are_explained_by_their_columns() -> None:
    for kind in KINDS.values():
        for column in kind.shown:
            assert not column.is_figure or term_of(column.explained_by or column.title), column.name
    assert "Live queries" in {term.word for term in FIGURES}
