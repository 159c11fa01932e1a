"""Reading the routing table of a cluster from its rows: the whole table, or the part of objects."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db.models import Q

from controlplane.catalog.computations import schema_of
from controlplane.errors import VersionMoved
from controlplane.models import ArmedLadder, Cluster, Drop, Node, Query, QueryStream, Stream, Task
from controlplane.pagination.chunks import CHUNK, chunks
from controlplane.queries.key_groupings import route_text
from controlplane.topology.versions import retry, version_of
from controlplane.wire.routing.actions import NodeState, TableDraft
from controlplane.wire.routing.drop_rules import Edge
from controlplane.wire.routing.ladder import Ladder
from controlplane.wire.routing.route import NO_AGGREGATOR, Route
from controlplane.wire.routing.split_assignment import assigned
from controlplane.wire.routing.table import RoutingTable
from controlplane.wire.sources.kinds import source_from_json


@dataclass(frozen=True)
class Scope:
    """The objects whose rows are read: ids of queries and streams, edges, the nodes, the ladder.

    `removed_from`: also the queries with tasks or an aggregator on nodes from this index on.
    """

    queries: Collection[int] = ()
    streams: Collection[int] = ()
    edges: Collection[Edge] = ()
    nodes: bool = False
    removed_from: int | None = None
    ladder: bool = False


@retry
def current_table(cluster_id: int) -> RoutingTable:
    """Return the whole table as the rows have it, consistent with one version.

    Raises `Conflict` if it changes under the reader again and again.
    """
    version = version_of(cluster_id)
    draft = _whole(cluster_id)
    if version_of(cluster_id) != version:
        raise VersionMoved(version)
    return RoutingTable.of(version, draft)


def read_part(cluster: Cluster, scope: Scope) -> TableDraft:
    """Return the part of the table that consists of the objects in scope."""
    draft = TableDraft(
        node_count=cluster.slots,
        split_count=cluster.splits,
        split_capacity=cluster.split_capacity,
        split_emulated=cluster.split_emulated,
    )
    for ids in chunks(sorted(scope.queries)):
        draft.queries |= _routes(Q(query__in=ids), streams_of(Q(query__in=ids)))
    for ids in chunks(sorted(scope.streams)):
        _read_streams(draft, Stream.objects.filter(cluster=cluster, pk__in=ids))
    if scope.edges:
        _read_drop_rules(draft, cluster.pk, {stream for stream, _ in scope.edges})
    if scope.nodes:
        draft.nodes = _nodes(cluster.pk, cluster.slots)
    if scope.ladder:
        draft.ladder = _ladder(cluster.pk)
    if scope.removed_from is not None:
        there = Q(tasks__node__index__gte=scope.removed_from)
        there |= Q(aggregator__index__gte=scope.removed_from)
        running = Query.objects.filter(cluster=cluster, tasks__isnull=False)
        ids = list(running.filter(there).values_list("pk", flat=True).distinct()[:CHUNK])
        several = running.exclude(more_aggregators=[]).values_list("pk", "more_aggregators")
        ids += [pk for pk, more in several.distinct() if max(more) >= scope.removed_from]
        draft.queries |= _routes(Q(query__in=ids), {})
    return draft


def declared_nodes(cluster_id: int) -> TableDraft:
    """Return the table of a cluster's nodes and split nodes, without queries and streams."""
    columns = ("slots", "splits", "split_capacity", "split_emulated")
    count, splits, capacity, emulated = Cluster.objects.values_list(*columns).get(pk=cluster_id)
    return TableDraft(
        nodes=_nodes(cluster_id, count),
        node_count=count,
        split_count=splits,
        split_capacity=capacity,
        split_emulated=emulated,
    )


def _whole(cluster_id: int) -> TableDraft:
    of_cluster = Q(query__cluster=cluster_id)
    draft = declared_nodes(cluster_id)
    draft.queries = _routes(of_cluster, streams_of(of_cluster & Q(query__tasks__index=0)))
    _read_streams(draft, Stream.objects.filter(cluster=cluster_id))
    _read_drop_rules(draft, cluster_id, None)
    draft.ladder = _ladder(cluster_id)
    return draft


def streams_of(condition: Q) -> dict[int, list[int]]:
    """Return the ids of the streams that queries read, in their order, by query."""
    return QueryStream.by_query(QueryStream.objects.filter(condition).order_by("id"))


def _routes(condition: Q, streams: dict[int, list[int]]) -> dict[int, Route]:
    """Return the routes of queries; those that `streams` does not know have none."""
    columns = (
        "query_id", "query__incarnation", "node__index", "query__text", "query__key_grouping",
        "query__key_grouping_parameters", "query__aggregator__index", "query__more_aggregators",
    )  # fmt: skip
    first = Task.objects.filter(condition, index=0)
    task_ranges = Task.ranges(Task.objects.filter(condition, query__task_count__gt=1))
    return {
        query: Route(
            incarnation,
            node,
            tuple(sorted(streams.get(query, ()))),
            text,
            task_ranges.get(query, ()),
            route_text(name, parameters),
            NO_AGGREGATOR if aggregator is None else aggregator,
            tuple(more),
        )
        for query, incarnation, node, text, name, parameters, aggregator, more in (
            first.values_list(*columns)
        )
    }


def _read_streams(draft: TableDraft, streams: "Iterable[Stream]") -> None:
    columns = "id", "split", "partition_splits", "schema", "source"
    for stream, split, partitions, row, source in streams.values_list(*columns):  # type: ignore[attr-defined]
        draft.splits[stream] = split
        draft.partitions |= assigned([(stream, partitions)])
        if (schema := schema_of(row)) is not None:
            draft.schemas[stream] = schema
        if source:
            draft.sources[stream] = source_from_json(source)


def _read_drop_rules(draft: TableDraft, cluster_id: int, streams: Collection[int] | None) -> None:
    rows = Drop.objects.filter(cluster=cluster_id)
    if streams is not None:
        rows = rows.filter(stream__in=streams)
    draft.drop_rules |= {row.edge: row.value for row in rows}


def _ladder(cluster_id: int) -> Ladder | None:
    row = ArmedLadder.objects.filter(cluster=cluster_id).first()
    return None if row is None else row.value


def _nodes(cluster_id: int, count: int) -> dict[int, NodeState]:
    rows = Node.objects.filter(cluster=cluster_id, index__lt=count).order_by("index")
    return {
        index: NodeState(capacity, emulated, active)
        for index, capacity, emulated, active in rows.values_list(
            "index", "capacity", "emulated", "active"
        )
    }
