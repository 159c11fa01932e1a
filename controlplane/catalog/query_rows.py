"""Rows of queries with their node, streams and drop rules."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from controlplane.catalog.computations import right_of
from controlplane.catalog.drop_rules import drop_rules_by_query
from controlplane.models import Drop, Node, Query, QueryStream, Task
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
    since_version: int | None
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
    for query, stream, name in reading.values_list("query_id", "stream_id", "stream__name"):
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
    if not tasks:
        return QueryRow(query, None, None, names, right=others, drops=tuple(drops))
    since = max(task.since_version for task in tasks)
    task_ranges = _task_ranges(query, tasks)
    return QueryRow(query, tasks[0].node, since, names, task_ranges, others, tuple(drops))


def _task_ranges(query: Query, tasks: Sequence[Task]) -> tuple[TaskRange, ...]:
    if query.task_count == 1:
        return ()
    return task_ranges_from([(task.index, task.node.index) for task in tasks], query.task_count)
