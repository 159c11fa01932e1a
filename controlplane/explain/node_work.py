"""The queries of a node, the streams that they read, and the part of each stream that it gets."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from controlplane.models import Cluster, Query, QueryStream, Task
from controlplane.pagination.chunks import chunks
from controlplane.wire.measures import TaskMeasure

# Nodes whose queries a process keeps: some MB of a node with thousands of queries.
_KEPT: Final = 8


class HostedQuery(NamedTuple):
    """A query with tasks on a node.

    `tasks`: their numbers; `task_count`: of all its tasks; `evaluations_per_s`, `state_bytes`: of
    the tasks on the node, None if they are not measured.
    """

    id: int
    name: str
    tasks: Sequence[int]
    task_count: int
    streams: Sequence[int]
    evaluations_per_s: float | None = None
    state_bytes: int | None = None
    submitted_by: str = ""

    @property
    def is_split(self) -> bool:
        """Return True if its key is split into several tasks."""
        return self.task_count > 1


@dataclass(frozen=True, eq=False)
class NodeQueries:
    """The queries on a node by id.

    `shares`: of the records of a split query, the part that its tasks on the node process;
    `whole_streams`: that the node receives as a whole, as a query of one task reads them.
    """

    queries: Mapping[int, HostedQuery]
    shares: Mapping[int, float]
    whole_streams: frozenset[int]

    @cached_property
    def weights(self) -> dict[int, float]:
        """Return the part of the records of each stream that the node receives, by id.

        A stream is delivered once for all queries of one task; of split queries, each adds the part
        of its tasks on the node that the others do not have, as in `LoadModel`.
        """
        return self.weights_without(frozenset())

    def weights_without(self, queries: frozenset[int]) -> dict[int, float]:
        """Return the weights as if these queries were elsewhere."""
        here = queries & self.queries.keys()
        whole = self.whole_streams
        if here - self.shares.keys():
            rows = self.queries.values()
            whole = _whole_streams(query for query in rows if query.id not in here)
        weights = dict.fromkeys(whole, 1.0)
        for query, part in self.shares.items():
            for stream in () if query in here else self.queries[query].streams:
                weights[stream] = 1 - (1 - weights.get(stream, 0.0)) * (1 - part)
        return weights


def _whole_streams(queries: Iterable[HostedQuery]) -> frozenset[int]:
    """Return the streams of the queries of one task."""
    return frozenset(stream for query in queries if not query.is_split for stream in query.streams)


class _Placed(NamedTuple):
    """What a node hosts by the rows of the database: queries by id, without measures.

    `whole`: as `NodeQueries.whole_streams`.
    """

    queries: Mapping[int, HostedQuery]
    whole: frozenset[int]


def read_node_work(cluster: Cluster, node: int, measures: Sequence[TaskMeasure]) -> NodeQueries:
    """Return the present work of a node; `measures`: of the tasks of all nodes, none if unknown."""
    placed = _placed(cluster.pk, cluster.created_at, cluster.routing_version, node)
    here, everywhere = _by_query(measures, node)
    queries = dict(placed.queries)
    for pk, (rate, size) in here.items():
        if pk in queries:
            queries[pk] = queries[pk]._replace(evaluations_per_s=rate, state_bytes=size)
    shares = {
        query.id: _share(query, everywhere.get(query.id)) for query in queries.values()
        if query.is_split
    }  # fmt: skip
    return NodeQueries(queries, shares, placed.whole)


# The page of a node is refreshed every few seconds, mostly without a new routing version.
@lru_cache(maxsize=_KEPT)
def _placed(cluster: int, created_at: datetime, version: int, node: int) -> _Placed:
    """Return what a node hosts at a routing version, by which tasks and queries change.

    `created_at`: of the cluster, as a new database reuses ids.
    """
    hosted = Task.objects.filter(node__cluster=cluster, node__index=node).values("query")
    queries = Query.objects.filter(pk__in=hosted).order_by("id")
    # Without model instances: a node may host thousands of queries.
    rows = list(queries.values_list("id", "name", "task_count", "submitted_by"))
    reads: dict[int, list[int]] = {}
    for query, stream in QueryStream.objects.filter(query__in=hosted).values_list(
        "query_id", "stream_id"
    ):
        reads.setdefault(query, []).append(stream)
    tasks = _tasks_on(node, [pk for pk, _, count, _ in rows if count > 1])
    result = {
        pk: HostedQuery(
            pk, name, tasks.get(pk, (0,)), count, reads.get(pk, ()), submitted_by=submitted_by
        )
        for pk, name, count, submitted_by in rows
    }
    return _Placed(result, _whole_streams(result.values()))


def split_queries(cluster: Cluster) -> frozenset[int]:
    """Return the ids of the running queries of several tasks."""
    return _split(cluster.pk, cluster.created_at, cluster.routing_version)


@lru_cache(maxsize=_KEPT)
def _split(cluster: int, created_at: datetime, version: int) -> frozenset[int]:
    """Return the same, by the cluster and the version as in `_placed`."""
    running = Query.objects.filter(cluster=cluster, state=Query.State.RUNNING)
    return frozenset(running.filter(task_count__gt=1).order_by().values_list("pk", flat=True))


def queries_over(
    cluster: Cluster, streams: Collection[int], without: Collection[int], most: int
) -> list[HostedQuery]:
    """Return running split queries that read one of the streams, by id, without tasks or measures.

    `without`: ids of queries that are left out; `most`: how many are returned.
    """
    # By the split queries, which are few: a node may read ten thousand streams.
    wanted, ids = set(streams), set()
    for part in chunks(sorted(split_queries(cluster).difference(without))):
        reading = QueryStream.objects.filter(query__in=part).order_by()
        ids |= {
            query for query, stream in reading.values_list("query_id", "stream_id")
            if stream in wanted
        }  # fmt: skip
    rows = Query.objects.filter(pk__in=sorted(ids)[:most]).order_by("id")
    return [HostedQuery(row.pk, row.name, (), row.task_count, ()) for row in rows]


def _tasks_on(node: int, split: Sequence[int]) -> dict[int, list[int]]:
    """Return the tasks of split queries on a node, by query."""
    ranges = Task.ranges(Task.objects.filter(query__in=split))
    return {
        query: [task for owner, first, stop in placed if owner == node
                for task in range(first, stop)]
        for query, placed in ranges.items()
    }  # fmt: skip


def _by_query(
    measures: Sequence[TaskMeasure], node: int
) -> tuple[dict[int, tuple[float, int]], dict[int, float]]:
    """Return evaluations/s and state of the tasks on a node by query, and evaluations/s of all."""
    here: dict[int, tuple[float, int]] = {}
    everywhere: dict[int, float] = {}
    for measure in measures:
        everywhere[measure.query] = everywhere.get(measure.query, 0.0) + measure.evaluations_per_s
        if measure.node == node:
            rate, size = here.get(measure.query, (0.0, 0))
            here[measure.query] = rate + measure.evaluations_per_s, size + measure.state_bytes
    return here, everywhere


def _share(query: HostedQuery, total: float | None) -> float:
    """Return the part of the records of a split query that its tasks on the node process."""
    if total and query.evaluations_per_s is not None:
        return min(1.0, query.evaluations_per_s / total)
    return len(query.tasks) / query.task_count
