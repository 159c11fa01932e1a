"""Queries of a cluster: lists with filters, one query by name or id, and their rows."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Count, F, FilteredRelation, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from controlplane.catalog.columns.queries import COLUMNS, LIVE, STATES
from controlplane.catalog.computations import computation_of_query, right_of
from controlplane.catalog.drop_rules import drop_rules_by_query
from controlplane.errors import Conflict
from controlplane.models import Cluster, Drop, Node, Query, QueryStream, Task
from controlplane.pagination.columns import order_names, orders_of
from controlplane.pagination.filter_text import MAX_LENGTH
from controlplane.pagination.listing import (
    Filters,
    Listing,
    choice_filter,
    selected,
    text_filter,
    whole_filter,
)
from controlplane.pagination.lookup import row_by
from controlplane.wire.query import BadQuery, Computation
from controlplane.wire.routing.route import TaskRange, task_ranges_from

# A stream by its id and name.
Read = tuple[int, str]


@dataclass(frozen=True)
class QueryListRow:
    """One query, the node its first task is on (None while it has none), its streams' names.

    task_ranges: which node (by index) has which tasks, of a query that is split. right: which
    of the streams are the right side of a join. drops: what its edges drop.
    """

    query: Query
    node: Node | None
    streams: tuple[str, ...]
    task_ranges: tuple[TaskRange, ...] = ()
    right: tuple[str, ...] = ()
    drops: tuple[Drop, ...] = ()

    @property
    def left(self) -> tuple[str, ...]:
        """Return the streams of the left side: all streams, unless the query is a join."""
        return tuple(name for name in self.streams if name not in self.right)


def rows_of(queries: Sequence[Query]) -> list[QueryListRow]:
    """Return the rows of queries, in three SQL statements.

    What they refer to is read beside them. Prefetched, each query would have a query set of its
    own for each relation, which takes longer to make, and to clear away, than its rows.
    """
    ids = [query.pk for query in queries]
    tasks: dict[int, list[Task]] = defaultdict(list)
    for task in Task.objects.filter(query__in=ids).select_related("node").order_by("index"):
        tasks[task.query_id].append(task)
    streams: dict[int, list[Read]] = defaultdict(list)
    reading = QueryStream.objects.filter(query__in=ids)
    columns = reading.values_list("query_id", "stream_id", "stream__name")
    for query, stream, name in columns:
        streams[query].append((stream, name))
    drops = drop_rules_by_query(ids)
    return [
        _row(query, tasks[query.pk], streams[query.pk], drops.get(query.pk, ()))
        for query in queries
    ]


def row_of(query: Query) -> QueryListRow:
    """Return the row of one query."""
    return rows_of([query])[0]


def _row(
    query: Query, tasks: Sequence[Task], streams: Sequence[Read], drops: Sequence[Drop]
) -> QueryListRow:
    right = right_of(query)
    # Sorted here: databases do not agree on the order of letters.
    names = tuple(sorted(name for _, name in streams))
    others = tuple(sorted(name for stream, name in streams if stream in right))
    node = tasks[0].node if tasks else None
    nodes = [(task.index, task.node.index) for task in tasks]
    is_split = tasks and query.task_count > 1
    task_ranges = task_ranges_from(nodes, query.task_count) if is_split else ()
    return QueryListRow(query, node, names, task_ranges, others, tuple(drops))


ORDERS: Final = orders_of(COLUMNS)


@dataclass(frozen=True)
class QueryFilters(Filters):
    """Filters of the list; state "live" is pending, running and ending, "" is all.

    node is a node's index, stream a stream's name; filter is a text with its terms. order is
    a key of ORDERS, "-" before it turns it round; "" is the newest first.
    """

    text: str = text_filter("q")
    state: str = choice_filter("state", lambda: (*STATES, LIVE))
    node: int | None = whole_filter("node")
    stream: str = text_filter("stream")
    order: str = choice_filter("order", lambda: order_names(COLUMNS))
    filter: str = text_filter("filter", MAX_LENGTH)


def query_by_id(cluster: Cluster, pk: int) -> Query:
    """Return a query of the cluster, ended ones too; raises `NotFound`."""
    return row_by(_whole(cluster), "query", pk=pk)


def query_by_name(cluster: Cluster, name: str) -> Query:
    """Return the newest query with the name; a live query is always newest. Raises `NotFound`."""
    return row_by(_whole(cluster).order_by("-id"), "query", name=name)


def names_of_streams(query: Query) -> dict[int, str]:
    """Return the names of the streams that a query reads, by their ids."""
    return {stream.pk: stream.name for stream in query.streams.all()}


def computed_by(query: Query) -> Computation:
    """Return the computation of a query. Raises `Conflict` (unreadable) if it cannot be parsed."""
    try:
        return computation_of_query(query)
    except BadQuery as bad:
        text = f"What {query.name} computes cannot be read any more: {bad}"
        raise Conflict("unreadable", text) from None


def state_counts(cluster: Cluster) -> dict[str, int]:
    """Return how many queries are in each state, zeros included."""
    rows = cluster.queries.order_by().values("state").annotate(n=Count("pk"))
    return dict.fromkeys(STATES, 0) | dict(rows.values_list("state", "n"))


def _whole(cluster: Cluster) -> QuerySet[Query]:
    return Query.objects.filter(cluster=cluster).select_related("aggregator")


def queries_listing(cluster: Cluster, filters: QueryFilters) -> Listing[Query, QueryListRow]:
    """Return the queries of a cluster in the order of the filters. Raises `BadFilter`."""
    rows = selected(_whole(cluster), filters, COLUMNS, _named, cluster)
    ordered = rows
    if filters.order.removeprefix("-") == "node":
        first = FilteredRelation("tasks", condition=Q(tasks__index=0))
        # Those that are nowhere yet before node 0, in every database.
        nowhere = Coalesce(F("first_task__node__index"), Value(-1))
        ordered = rows.alias(first_task=first).annotate(first_node=nowhere)
    return Listing(ordered, _order(filters.order), rows_of, filters, by_id=True, counted=rows)


def _named(word: str) -> Q:
    return Q(name__icontains=word)


def _order(order: str) -> tuple[str, str]:
    column = ORDERS.get(order.removeprefix("-"))
    if column is None:
        return "-submitted_at", "-pk"
    sign = "-" if order.startswith("-") else ""
    return f"{sign}{column}", f"{sign}pk"
