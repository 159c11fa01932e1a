"""Queries of a cluster: pages with filters, one by name or id, where it runs, its results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import QuerySet

from controlplane.connections import redis_client
from controlplane.errors import NotFound
from controlplane.models import Cluster, Node, Query
from controlplane.selectors.paging import (
    MAX_PER_PAGE,
    PER_PAGE,
    Page,
    one_of,
    optional_whole,
    page_of,
    whole,
)
from controlplane.wire.results import WindowResult, read_results

# What a column is called in a query string, and what it is called in the table.
ORDERS: Final = {
    "name": "name",
    "state": "state",
    "node": "tasks__node__index",
    "window": "window_s",
    "submitted": "submitted_at",
}
STATES = tuple(str(state) for state in Query.State.values)


@dataclass(frozen=True)
class QueryFilters:
    """What the list shows; state "live" is pending, running and ending, "" is all.

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


@dataclass(frozen=True)
class QueryRow:
    """One query, the node its task is on (None while it has none) and its streams' names."""

    query: Query
    node: Node | None
    since_version: int | None
    streams: tuple[str, ...]


def queries_page(cluster: Cluster, filters: QueryFilters) -> Page[QueryRow]:
    """Return one page of queries in the order the filters name."""
    return page_of(_filtered(cluster, filters), filters.page, filters.per_page, _rows)


def query_by_id(cluster: Cluster, pk: int) -> QueryRow:
    """Return a query of the cluster, ended ones too; raises `NotFound`."""
    found = _whole(cluster).filter(pk=pk).first()
    if found is None:
        raise NotFound("query", pk)
    return _rows([found])[0]


def query_by_name(cluster: Cluster, name: str) -> QueryRow:
    """Return the newest query with the name, which is the live one if one lives."""
    found = _whole(cluster).filter(name=name).order_by("-id").first()
    if found is None:
        raise NotFound("query", name)
    return _rows([found])[0]


def query_results(cluster: Cluster, query: Query, limit: int = 200) -> list[WindowResult]:
    """Return the newest windows of a query, newest first, merged over its runs."""
    return read_results(redis_client(), cluster.slug, query.pk, limit)


def state_counts(cluster: Cluster) -> dict[str, int]:
    """Return how many queries are in each state, zeros included."""
    counts = dict.fromkeys(STATES, 0)
    for state in STATES:
        counts[state] = cluster.queries.filter(state=state).count()
    return counts


def _whole(cluster: Cluster) -> QuerySet[Query]:
    return Query.objects.filter(cluster=cluster).prefetch_related("tasks__node", "streams")


def _filtered(cluster: Cluster, filters: QueryFilters) -> QuerySet[Query]:
    found = _whole(cluster).order_by(*_order(filters.order))
    if filters.text:
        found = found.filter(name__icontains=filters.text)
    if filters.state == "live":
        found = found.filter(state__in=("pending", "running", "ending"))
    elif filters.state:
        found = found.filter(state=filters.state)
    if filters.node is not None:
        found = found.filter(tasks__node__index=filters.node)
    return found.filter(streams__name=filters.stream) if filters.stream else found


def _order(order: str) -> tuple[str, str]:
    column = ORDERS.get(order.removeprefix("-"))
    if column is None:
        return "-submitted_at", "-id"
    sign = "-" if order.startswith("-") else ""
    return f"{sign}{column}", f"{sign}id"


def _rows(queries: Sequence[Query]) -> list[QueryRow]:
    return [_row(query) for query in queries]


def _row(query: Query) -> QueryRow:
    task = next(iter(query.tasks.all()), None)
    names = tuple(sorted(stream.name for stream in query.streams.all()))
    if task is None:
        return QueryRow(query, None, None, names)
    return QueryRow(query, task.node, task.since_version, names)
