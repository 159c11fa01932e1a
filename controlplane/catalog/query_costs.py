"""What queries cost, for lists: evaluations/s, latency, processor time, state and sharing.

The measures of tasks are in Redis; a list of 100,000 queries cannot be sorted by them there. The
processor time is estimated: the measured time of nodes, divided by records.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from datetime import datetime, timedelta
from math import isnan
from typing import Any, Final

from django.db import connection
from redis.exceptions import RedisError

from controlplane.connections import redis_client
from controlplane.models import Cluster, Query, QueryStream, Task
from controlplane.pagination.chunks import update_rows
from controlplane.telemetry.measures import PRESENT, present_end, shown_seconds
from controlplane.telemetry.series import read
from controlplane.wire.measures import TaskMeasure, read_tasks

# A row with equal figures is written again after this time, so that it does not look old.
REWRITTEN: Final = timedelta(minutes=5)
# Figures that differ by less than this part are equal.
_TOLERANCE: Final = 0.01


@dataclass(frozen=True)
class QueryCost:
    """What a query costs: evaluations/s and bytes of its tasks, p95 of its slowest node (ms).

    `processor_percent`: the estimated processor time, in % of one processor. `shared_with`: the
    number of other queries with the same computation on one of its nodes.
    """

    evaluations_per_s: float = 0.0
    latency_ms: float = 0.0
    state_bytes: int = 0
    shared_with: int = 0
    processor_percent: float = 0.0

    def is_close_to(self, other: "QueryCost") -> bool:
        """Return True if a list would show the same."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return all(abs(a - b) <= _TOLERANCE * max(abs(a), abs(b)) for a, b in pairs)


def record_query_costs(cluster: Cluster, now: datetime) -> int:
    """Store the costs of the running queries of a cluster; return how many rows were written."""
    columns = tuple(column.name for column in fields(QueryCost))
    measured = Query.objects.filter(cluster=cluster).exclude(measured_at=None)
    measured.exclude(state=Query.State.RUNNING).update(
        **dict.fromkeys(columns, 0), measured_at=None
    )
    costs = query_costs(cluster, now)
    known = {
        pk: (QueryCost(*values), moment)
        for pk, moment, *values in Query.objects.filter(
            cluster=cluster, state=Query.State.RUNNING
        ).values_list("pk", "measured_at", *columns)
    }
    changed = {
        pk: cost
        for pk, cost in costs.items()
        if pk in known and not _is_current(cost, *known[pk], now)
    }
    write_costs(changed, now)
    return len(changed)


def _is_current(
    cost: QueryCost, stored: QueryCost, measured_at: datetime | None, now: datetime
) -> bool:
    is_young = measured_at is not None and now - measured_at < REWRITTEN
    return is_young and cost.is_close_to(stored)


def query_costs(cluster: Cluster, now: datetime) -> dict[int, QueryCost]:
    """Return the costs of the measured queries by id; none if Redis is unavailable."""
    try:
        tasks = read_tasks(redis_client(), cluster.slug, range(cluster.slots))
    except (RedisError, OSError):
        return {}
    records: dict[int, float] = defaultdict(float)
    sizes: dict[int, int] = defaultdict(int)
    nodes: dict[int, set[int]] = defaultdict(set)
    for task in tasks:
        records[task.query] += task.evaluations_per_s
        sizes[task.query] += task.state_bytes
        nodes[task.query].add(task.node)
    latencies = recent_means(cluster, now, "node_p95")
    processor = processor_percents(tasks, recent_means(cluster, now, "busy"))
    shared = shared_counts(cluster)
    return {
        query: QueryCost(
            records[query], max((latencies.get(node, 0.0) for node in hosts), default=0.0),
            sizes[query], shared.get(query, 0), processor.get(query, 0.0),
        )
        for query, hosts in nodes.items()
    }  # fmt: skip


def recent_means(cluster: Cluster, now: datetime, figure: str) -> dict[int, float]:
    """Return the mean of a figure of the nodes in the last minute, by their index."""
    end = present_end(now)
    start = end - PRESENT
    seconds = shown_seconds(start, end, now)
    means = read(cluster, (figure,), start, end, seconds).window()[figure][0]
    return {node: value for node, value in enumerate(means.tolist()) if not isnan(value)}


def shared_counts(cluster: Cluster) -> dict[int, int]:
    """Return how many other running queries compute the same on a common node, by query.

    They have the same text, a common stream and a common node.
    """
    running = Query.objects.filter(cluster=cluster, state=Query.State.RUNNING)
    texts = dict(running.values_list("pk", "text"))
    streams = _pairs(QueryStream.objects.filter(query__in=running).values_list(
        "query_id", "stream_id"))  # fmt: skip
    nodes = _pairs(Task.objects.filter(query__in=running).values_list("query_id", "node_id"))
    members: dict[Any, set[int]] = defaultdict(set)
    places: dict[int, frozenset[Any]] = {}
    for query, text in texts.items():
        keys = frozenset((text, stream, node) for stream in streams[query] for node in nodes[query])
        places[query] = keys
        for key in keys:
            members[key].add(query)
    return _other_members(places, members)


def _other_members(
    places: Mapping[int, frozenset[Any]], members: Mapping[Any, set[int]]
) -> dict[int, int]:
    """Return the number of other members of the groups of each query.

    Queries of the same groups have the same number, so it is computed once for them.
    """
    counts: dict[frozenset[Any], int] = {frozenset(): 0}
    for keys in places.values():
        if keys not in counts:
            counts[keys] = len(set().union(*(members[key] for key in keys))) - 1
    return {query: counts[keys] for query, keys in places.items()}


def _pairs(rows: Iterable[tuple[int, int]]) -> dict[int, set[int]]:
    result: dict[int, set[int]] = defaultdict(set)
    for first, second in rows:
        result[first].add(second)
    return result


def write_costs(costs: Mapping[int, QueryCost], now: datetime) -> None:
    """Store the costs of queries by id, measured at a moment."""
    columns = ", ".join(f"{column.name} = %s" for column in fields(QueryCost))
    moment = connection.ops.adapt_datetimefield_value(now)
    rows = [(*astuple(cost), moment, pk) for pk, cost in costs.items()]
    update_rows(Query, f"{columns}, measured_at = %s", rows)


def processor_percents(tasks: Iterable[TaskMeasure], busy: Mapping[int, float]) -> dict[int, float]:
    """Return the part of a second that nodes compute for each query, in % of one processor.

    `busy`: the share of time that each node computes, by index; queries on other nodes only are
    left out. An estimate: the time of a node is divided among its queries by their records. A query
    whose records need more than those of others, or that shares its work, is off by it.
    """
    records: dict[tuple[int, int], float] = defaultdict(float)
    totals: dict[int, float] = defaultdict(float)
    for task in tasks:
        records[task.query, task.node] += task.evaluations_per_s
        totals[task.node] += task.evaluations_per_s
    # Of a record per second on each node.
    cost = {
        node: 100 * busy[node] / total for node, total in totals.items() if total and node in busy
    }
    result: dict[int, float] = {}
    for (query, node), rate in records.items():
        if node in cost:
            result[query] = result.get(query, 0.0) + rate * cost[node]
    return result
