"""Queries of a cluster: lists with filters, and one query by name or id."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import F, FilteredRelation, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from controlplane.catalog.computations import computation_of_query
from controlplane.catalog.query_rows import QueryRow, rows_of
from controlplane.errors import Conflict, NotFound
from controlplane.models import Cluster, Query, QueryStream, Task
from controlplane.pagination.cursors import Place, Slice, slice_of
from controlplane.pagination.pages import (
    MAX_PER_PAGE,
    PER_PAGE,
    Page,
    one_of,
    optional_whole,
    page_of,
    whole,
)
from controlplane.wire.query import BadQuery, Computation

# What a column is called in a query string, and what it is called in the table.
ORDERS: Final = {
    "name": "name",
    "state": "state",
    "node": "first_node",
    "window": "window_s",
    "submitted": "submitted_at",
}
STATES = tuple(str(state) for state in Query.State.values)


@dataclass(frozen=True)
class QueryFilters:
    """Filters of the list; state "live" is pending, running and ending, "" is all.

    node is a node's index, stream a stream's name. order is a key of ORDERS, "-" before it turns
    it round; anything else is the newest first.
    """

    text: str = ""
    state: str = ""
    node: int | None = None
    stream: str = ""
    order: str = ""
    page: int = 1
    per_page: int = PER_PAGE

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "QueryFilters":
        """Read q, state, node, stream, order, page, per_page of a query string."""
        return cls(
            text=str(values.get("q", "")).strip()[:100],
            state=one_of(values, "state", (*STATES, "live")),
            node=optional_whole(values, "node"),
            stream=str(values.get("stream", "")).strip()[:100],
            order=str(values.get("order", "")),
            page=whole(values, "page", 1),
            per_page=whole(values, "per_page", PER_PAGE, MAX_PER_PAGE),
        )


def queries_page(cluster: Cluster, filters: QueryFilters) -> Page[QueryRow]:
    """Return one page of queries in the order the filters name."""
    return page_of(_filtered(cluster, filters), filters.page, filters.per_page, rows_of)


def queries_slice(cluster: Cluster, filters: QueryFilters, place: Place) -> Slice[QueryRow]:
    """Return the queries after a cursor in the order of the filters. Raises `Invalid`."""
    return slice_of(_filtered(cluster, filters), _order(filters.order), place, rows_of)


def query_by_id(cluster: Cluster, pk: int) -> Query:
    """Return a query of the cluster, ended ones too; raises `NotFound`."""
    row = _whole(cluster).filter(pk=pk).first()
    if row is None:
        raise NotFound("query", pk)
    return row


def query_by_name(cluster: Cluster, name: str) -> Query:
    """Return the newest query with the name; a live query is always newest. Raises `NotFound`."""
    row = _whole(cluster).filter(name=name).order_by("-id").first()
    if row is None:
        raise NotFound("query", name)
    return row


def names_of_streams(query: Query) -> dict[int, str]:
    """Return the names of the streams that a query reads, by their ids."""
    return dict(query.streams.values_list("id", "name"))


def computed_by(query: Query) -> Computation:
    """Return the computation of a query. Raises `Conflict` (unreadable) if it cannot be parsed."""
    try:
        return computation_of_query(query)
    except BadQuery as bad:
        text = f"What {query.name} computes cannot be read any more: {bad}"
        raise Conflict("unreadable", text) from None


def state_counts(cluster: Cluster) -> dict[str, int]:
    """Return how many queries are in each state, zeros included."""
    counts = dict.fromkeys(STATES, 0)
    for state in STATES:
        counts[state] = cluster.queries.filter(state=state).count()
    return counts


def _whole(cluster: Cluster) -> QuerySet[Query]:
    return Query.objects.filter(cluster=cluster).select_related("aggregator")


def _filtered(cluster: Cluster, filters: QueryFilters) -> QuerySet[Query]:
    rows = _whole(cluster)
    if filters.order.removeprefix("-") == "node":
        first = FilteredRelation("tasks", condition=Q(tasks__index=0))
        # Those that are nowhere yet before node 0, in every database.
        nowhere = Coalesce(F("first_task__node__index"), Value(-1))
        rows = rows.alias(first_task=first).annotate(first_node=nowhere)
    rows = rows.order_by(*_order(filters.order))
    if filters.text:
        rows = rows.filter(name__icontains=filters.text)
    if filters.state == "live":
        rows = rows.filter(state__in=("pending", "running", "ending"))
    elif filters.state:
        rows = rows.filter(state=filters.state)
    if filters.node is not None:
        here = Task.objects.filter(node__cluster=cluster, node__index=filters.node)
        rows = rows.filter(pk__in=here.values("query"))
    if filters.stream:
        # By the stream's readers, not by looking at what every query reads.
        read = QueryStream.objects.filter(stream__cluster=cluster, stream__name=filters.stream)
        rows = rows.filter(pk__in=read.values("query"))
    return rows


def _order(order: str) -> tuple[str, str]:
    column = ORDERS.get(order.removeprefix("-"))
    if column is None:
        return "-submitted_at", "-pk"
    sign = "-" if order.startswith("-") else ""
    return f"{sign}{column}", f"{sign}pk"
