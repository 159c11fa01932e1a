"""Queries of a cluster: lists with filters, one query by name or id, and their rows."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import F, FilteredRelation, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from controlplane.catalog.computations import computation_of_query, right_of
from controlplane.catalog.drop_rules import drop_rules_by_query
from controlplane.errors import Conflict
from controlplane.models import Cluster, Drop, Node, Query, QueryStream, Task
from controlplane.models.query import LIVE_STATES
from controlplane.pagination.filter_text import (
    MAX_LENGTH,
    FieldKind,
    FilterField,
    by_column,
    filtered,
)
from controlplane.pagination.listing import (
    Filters,
    Listing,
    choice_filter,
    text_filter,
    whole_filter,
)
from controlplane.pagination.lookup import row_by
from controlplane.wire.query import BadQuery, Computation
from controlplane.wire.routing.route import TaskRange, task_ranges_from

# A stream by its id and name.
Read = tuple[int, str]


@dataclass(frozen=True)
class QueryRow:
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
        """Return the streams of the left side, which are all streams of a query that is no join."""
        return tuple(name for name in self.streams if name not in self.right)


def rows_of(queries: Sequence[Query]) -> list[QueryRow]:
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


def row_of(query: Query) -> QueryRow:
    """Return the row of one query."""
    return rows_of([query])[0]


def _row(
    query: Query, tasks: Sequence[Task], streams: Sequence[Read], drops: Sequence[Drop]
) -> QueryRow:
    right = right_of(query)
    # Sorted here: databases do not agree on the order of letters.
    names = tuple(sorted(name for _, name in streams))
    others = tuple(sorted(name for stream, name in streams if stream in right))
    node = tasks[0].node if tasks else None
    nodes = [(task.index, task.node.index) for task in tasks]
    is_split = tasks and query.task_count > 1
    task_ranges = task_ranges_from(nodes, query.task_count) if is_split else ()
    return QueryRow(query, node, names, task_ranges, others, tuple(drops))


# What a column is called in a query string, and what it is called in the table.
ORDERS: Final = {
    "name": "name",
    "state": "state",
    "node": "first_node",
    "window": "window_s",
    "submitted": "submitted_at",
    "rate": "source_rate",
    "tasks": "task_count",
    "records": "records_per_s",
    "latency": "latency_ms",
    "processor": "processor_percent",
    "bytes": "state_bytes",
    "shared": "shared_with",
}
ORDER_NAMES = tuple(sign + name for name in ORDERS for sign in ("", "-"))
STATES = tuple(str(state) for state in Query.State.values)
LIVE: Final = "live"


def _state_is(_cluster: Cluster | None, lookup: str, state: str) -> Q:
    return Q(state__in=LIVE_STATES) if state == LIVE else Q(**{f"state__{lookup}": state})


def _on_node(cluster: Cluster | None, lookup: str, index: float) -> Q:
    here = Task.objects.filter(node__cluster=cluster, **{f"node__index__{lookup}": index})
    return Q(pk__in=here.values("query"))


def _reads_stream(cluster: Cluster | None, lookup: str, name: str) -> Q:
    # By the streams' readers, not by looking at what every query reads.
    read = QueryStream.objects.filter(stream__cluster=cluster, **{f"stream__name__{lookup}": name})
    return Q(pk__in=read.values("query"))


# The fields of the list's filter text.
FIELDS: Final = (
    FilterField("name", "name of the query", FieldKind.TEXT, by_column("name")),
    FilterField("state", "state; live: pending, running or ending", FieldKind.CHOICE, _state_is,
                lambda: (LIVE, *STATES)),
    FilterField("node", "index of a node that has a task of it", FieldKind.NUMBER, _on_node),
    FilterField("stream", "name of a stream that it reads", FieldKind.TEXT, _reads_stream),
    FilterField("rate", "records of its streams", FieldKind.NUMBER, by_column("source_rate"),
                unit="records/s"),
    FilterField("records", "records that its tasks process", FieldKind.NUMBER,
                by_column("records_per_s"), unit="records/s"),
    FilterField("latency", "p95 of the slowest of its nodes", FieldKind.NUMBER,
                by_column("latency_ms"), unit="ms"),
    FilterField("processor", "estimated processor time", FieldKind.NUMBER,
                by_column("processor_percent"), unit="% of one processor"),
    FilterField("bytes", "state of its tasks", FieldKind.NUMBER, by_column("state_bytes"),
                unit="bytes"),
    FilterField("shared", "number of queries with the same computation on a node of it",
                FieldKind.NUMBER, by_column("shared_with")),
    FilterField("window", "length of its windows", FieldKind.NUMBER, by_column("window_s"),
                unit="s"),
    FilterField("tasks", "number of tasks", FieldKind.NUMBER, by_column("task_count")),
    FilterField("by", "user who submitted it", FieldKind.TEXT, by_column("submitted_by")),
    FilterField("submitted", "time of submission", FieldKind.TIME, by_column("submitted_at")),
)  # fmt: skip


@dataclass(frozen=True)
class QueryFilters(Filters):
    """Filters of the list; state "live" is pending, running and ending, "" is all.

    node is a node's index, stream a stream's name; filter is a text with fields of FIELDS. order is
    one of ORDER_NAMES: a key of ORDERS, "-" before it turns it round; "" is the newest first.
    """

    text: str = text_filter("q")
    state: str = choice_filter("state", lambda: (*STATES, LIVE))
    node: int | None = whole_filter("node")
    stream: str = text_filter("stream")
    order: str = choice_filter("order", lambda: ORDER_NAMES)
    filter: str = text_filter("filter", MAX_LENGTH)


def query_by_id(cluster: Cluster, pk: int) -> Query:
    """Return a query of the cluster, ended ones too; raises `NotFound`."""
    return row_by(_whole(cluster), "query", pk=pk)


def query_by_name(cluster: Cluster, name: str) -> Query:
    """Return the newest query with the name; a live query is always newest. Raises `NotFound`."""
    return row_by(_whole(cluster).order_by("-id"), "query", name=name)


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
    return {state: cluster.queries.filter(state=state).count() for state in STATES}


def _whole(cluster: Cluster) -> QuerySet[Query]:
    return Query.objects.filter(cluster=cluster).select_related("aggregator")


def queries_listing(cluster: Cluster, filters: QueryFilters) -> Listing[Query, QueryRow]:
    """Return the queries of a cluster in the order of the filters. Raises `BadFilter`."""
    rows = _whole(cluster)
    if filters.text:
        rows = rows.filter(name__icontains=filters.text)
    if filters.state == LIVE:
        rows = rows.filter(state__in=LIVE_STATES)
    elif filters.state:
        rows = rows.filter(state=filters.state)
    if filters.node is not None:
        rows = rows.filter(_on_node(cluster, "exact", filters.node))
    if filters.stream:
        rows = rows.filter(_reads_stream(cluster, "exact", filters.stream))
    rows = filtered(rows, filters.filter, FIELDS, lambda word: Q(name__icontains=word), cluster)
    ordered = rows
    if filters.order.removeprefix("-") == "node":
        first = FilteredRelation("tasks", condition=Q(tasks__index=0))
        # Those that are nowhere yet before node 0, in every database.
        nowhere = Coalesce(F("first_task__node__index"), Value(-1))
        ordered = rows.alias(first_task=first).annotate(first_node=nowhere)
    return Listing(ordered, _order(filters.order), rows_of, filters, by_id=True, counted=rows)


def _order(order: str) -> tuple[str, str]:
    column = ORDERS.get(order.removeprefix("-"))
    if column is None:
        return "-submitted_at", "-pk"
    sign = "-" if order.startswith("-") else ""
    return f"{sign}{column}", f"{sign}pk"
