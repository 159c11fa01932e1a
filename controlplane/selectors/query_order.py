"""Pages of queries in an order of the reader's choice."""

from typing import Final

from controlplane.models import Cluster
from controlplane.selectors.paging import Page, page_of
from controlplane.selectors.queries import QueryFilters, QueryRow, _filtered, _rows

# What a column is called in a query string, and what it is called in the table.
COLUMNS: Final = {
    "name": "name",
    "state": "state",
    "node": "tasks__node__index",
    "window": "window_s",
    "submitted": "submitted_at",
}


def ordered_queries_page(cluster: Cluster, filters: QueryFilters, order: str) -> Page[QueryRow]:
    """Return one page; order is a key of COLUMNS, "-" before it turns it round.

    An unknown order gives the newest first.
    """
    column = COLUMNS.get(order.removeprefix("-"))
    found = _filtered(cluster, filters)
    if column:
        sign = "-" if order.startswith("-") else ""
        found = found.order_by(f"{sign}{column}", f"{sign}id")
    return page_of(found, filters.page, filters.per_page, _rows)
