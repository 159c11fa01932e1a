"""Writing the rows of a changed topology: what differs between two drafts of a routing table.

The rows are the image of the table: an action declares its effect on the table once, and the rows
that this changes follow from the difference. Only `topology.apply` writes through this module.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from controlplane.catalog.computations import schema_of
from controlplane.catalog.reader_counts import subtract_readers
from controlplane.errors import VersionMoved
from controlplane.models import (
    ArmedLadder,
    Cluster,
    DisarmedLadder,
    Drop,
    Node,
    Query,
    QueryStream,
    Redirection,
    Stream,
    Task,
)
from controlplane.models.query import LIVE_STATES
from controlplane.pagination.chunks import CHUNK, chunks
from controlplane.queries.key_groupings import columns_of
from controlplane.topology.schemas.evolution import retired_after
from controlplane.wire.routing.actions import NodeState, TableDraft
from controlplane.wire.routing.drop_rules import INPUT, Edge
from controlplane.wire.routing.ladder import Ladder
from controlplane.wire.routing.route import NO_AGGREGATOR, Route, TaskRange
from controlplane.wire.routing.split_assignment import SourcePartition

T = TypeVar("T", bound=Hashable)
# Columns of a cluster, by the parts of its routing table.
_COLUMNS: Final = {
    "node_count": "slots",
    "split_count": "splits",
    "split_capacity": "split_capacity",
    "split_emulated": "split_emulated",
}


@dataclass(frozen=True)
class Writer:
    """Who changes the topology, why, and the routing version that the change has.

    `summary`: a sentence about the change, for changes without a person's reason; `snapshot`: the
    digest of that from which the change was planned, None if it is not known.
    """

    actor: str
    reason: str
    version: int
    summary: str = ""
    snapshot: str | None = None


def write_rows(cluster: Cluster, before: TableDraft, after: TableDraft, writer: Writer) -> None:
    """Write what differs between the drafts, in the caller's transaction.

    Raises `VersionMoved` if a query is no longer in the state in which the actions were decided.
    """
    _write_counts(cluster, before, after)
    if before.nodes != after.nodes:
        _write_nodes(cluster, before.nodes, after.nodes)
    if before.queries != after.queries:
        # It may empty them.
        hosting = Exists(Task.objects.filter(node=OuterRef("pk")))
        cluster.nodes.filter(hosting, hosted=False).update(hosted=True)
        _QueryRows(cluster, writer).write(before.queries, after.queries)
    _delete_streams(before.splits.keys() - after.splits.keys(), writer)
    _write_splits(before, after, writer)
    _write_schemas(before, after)
    for stream, source in after.sources.items():
        if before.sources.get(stream) != source:
            Stream.objects.filter(pk=stream).update(source=source.to_json())
    if before.drop_rules != after.drop_rules:
        _write_drop_rules(cluster, before, after, writer)
    if before.ladder != after.ladder:
        _write_ladder(cluster, before.ladder, after.ladder, writer)


def _write_counts(cluster: Cluster, before: TableDraft, after: TableDraft) -> None:
    changed = {
        column: getattr(after, name)
        for name, column in _COLUMNS.items()
        if getattr(before, name) != getattr(after, name)
    }
    if changed:
        if changed.keys() & {"split_capacity", "split_emulated"}:
            changed["split_capacity_at"] = timezone.now()
        Cluster.objects.filter(pk=cluster.pk).update(**changed)
        for name, value in changed.items():
            setattr(cluster, name, value)


def _write_nodes(
    cluster: Cluster, before: Mapping[int, NodeState], after: Mapping[int, NodeState]
) -> None:
    rows = {node.index: node for node in cluster.nodes.all()}
    created, changed = [], []
    for index, state in after.items():
        if before.get(index) == state:
            continue
        row = rows.get(index)
        if row is None:
            created.append(_set(Node(cluster=cluster, index=index, name=f"node {index}"), state))
        else:
            changed.append(_set(row, state))
    # Samples refer to the row of a removed node: it stays, and takes no work.
    for index in before.keys() - after.keys():
        rows[index].active = False
        changed.append(rows[index])
    Node.objects.bulk_create(created)
    Node.objects.bulk_update(
        changed, ["capacity", "emulated", "active", "hosted"], batch_size=CHUNK
    )


def _set(row: Node, state: NodeState) -> Node:
    row.hosted = row.hosted and row.active
    row.capacity, row.emulated, row.active = state.capacity, state.emulated, state.active
    return row


class _QueryRows:
    """Writes the rows of queries and their tasks."""

    def __init__(self, cluster: Cluster, writer: Writer) -> None:
        self._version = writer.version
        self._nodes = dict(Node.objects.filter(cluster=cluster).values_list("index", "id"))

    def write(self, before: Mapping[int, Route], after: Mapping[int, Route]) -> None:
        """Write the queries that were added, removed and changed."""
        if removed := [query for query in before if query not in after]:
            self._remove(removed)
        if added := {query: route for query, route in after.items() if query not in before}:
            self._add(added)
        changed = {
            query: (old, after[query])
            for query, old in before.items()
            if query in after and after[query] != old
        }
        if changed:
            self._change(changed)

    def _remove(self, queries: Sequence[int]) -> None:
        ended = 0
        for ids in chunks(queries):
            deleted, _ = Task.objects.filter(query__in=ids).delete()
            Drop.objects.filter(query__in=ids).delete()
            merged = Query.objects.filter(pk__in=ids, aggregator__isnull=False)
            merged.update(aggregator=None, more_aggregators=[])
            ending = Query.objects.filter(pk__in=ids, state=Query.State.ENDING)
            now = timezone.now()
            # A query with a detail ends because the data plane could not compute it.
            failed = ending.exclude(detail="").update(state=Query.State.FAILED, ended_at=now)
            ended += failed + ending.update(state=Query.State.ENDED, ended_at=now)
            if deleted < len(ids):
                raise VersionMoved(self._version - 1)
        if ended != len(queries):
            raise VersionMoved(self._version - 1)
        subtract_readers(queries)

    def _add(self, added: Mapping[int, Route]) -> None:
        placed = 0
        for ids in chunks(list(added)):
            pending = Query.objects.filter(pk__in=ids, state=Query.State.PENDING)
            placed += pending.update(state=Query.State.RUNNING, placed_at=timezone.now(), detail="")
        if placed != len(added):
            # A query was ended in the meantime.
            raise VersionMoved(self._version - 1)
        Task.objects.bulk_create(
            task for query, route in added.items() for task in self._tasks(query, route)
        )
        self._set_aggregators({query: route.aggregators for query, route in added.items()})

    def _change(self, changed: Mapping[int, tuple[Route, Route]]) -> None:
        self._set_owners(changed)
        queries = Query.objects.all()
        incarnations = {
            query: new.incarnation
            for query, (old, new) in changed.items()
            if old.incarnation != new.incarnation
        }
        _update(queries, incarnations, lambda incarnation: {"incarnation": incarnation})
        groupings = {
            query: (new.key_grouping, new.aggregator != NO_AGGREGATOR)
            for query, (old, new) in changed.items()
            if old.key_grouping != new.key_grouping
        }
        _update(queries, groupings, lambda grouping: _grouping_columns(*grouping))
        self._set_aggregators(
            {
                query: new.aggregators
                for query, (old, new) in changed.items()
                if old.aggregators != new.aggregators
            }
        )

    def _set_owners(self, changed: Mapping[int, tuple[Route, Route]]) -> None:
        whole: dict[int, int] = {}
        counts: dict[int, int] = {}
        for query, (old, new) in changed.items():
            before, after = old.owners(), new.owners()
            if len(before) != len(after):
                counts[query] = len(after)
            if before != after and new.task_ranges:
                self._rewrite(query, new)
            elif before != after:
                whole[query] = self._nodes[new.node]
        placed = {"since_version": self._version}
        _update(Task.objects.all(), whole, lambda node: {"node": node, **placed}, "query__in")
        _update(Query.objects.all(), counts, lambda count: {"task_count": count})

    def _set_aggregators(self, nodes: Mapping[int, tuple[int, ...]]) -> None:
        _update(
            Query.objects.all(),
            {query: aggregators for query, aggregators in nodes.items() if aggregators},
            lambda all_: {"aggregator": self._nodes[all_[0]], "more_aggregators": list(all_[1:])},
        )

    def _rewrite(self, query: int, route: Route) -> None:
        """Replace the ranges of a query with several tasks."""
        Task.objects.filter(query=query).delete()
        Task.objects.bulk_create(self._tasks(query, route))

    def _tasks(self, query: int, route: Route) -> Iterator[Task]:
        ranges: tuple[TaskRange, ...] = route.task_ranges or ((route.node, 0, 1),)
        for node, first, _ in ranges:
            yield Task(
                query_id=query, index=first, node_id=self._nodes[node], since_version=self._version
            )


def _grouping_columns(text: str, aggregated: bool) -> dict[str, Any]:
    name, parameters = columns_of(text, aggregated=aggregated)
    return {"key_grouping": name, "key_grouping_parameters": parameters}


def _update(
    rows: QuerySet[Any],
    values: Mapping[int, T],
    columns: Callable[[T], Mapping[str, Any]],
    key: str = "pk__in",
) -> None:
    """Update the rows of each id to the columns of its value, a statement per distinct value."""
    by_value: dict[T, list[int]] = defaultdict(list)
    for id_, value in values.items():
        by_value[value].append(id_)
    for value, all_ids in by_value.items():
        for ids in chunks(all_ids):
            rows.filter(**{key: ids}).update(**columns(value))


def _delete_streams(streams: Collection[int], writer: Writer) -> None:
    """Delete streams, and all that ended queries of them have read: part of it is another query.

    Raises `VersionMoved` if a live query reads one by now.
    """
    if not streams:
        return
    list(Stream.objects.select_for_update().filter(pk__in=streams))
    subscriptions = QueryStream.objects.filter(query__subscriptions__stream__in=streams)
    if subscriptions.filter(query__state__in=LIVE_STATES).exists():
        raise VersionMoved(writer.version - 1)
    subscriptions.delete()
    Stream.objects.filter(pk__in=streams).delete()


def _write_splits(before: TableDraft, after: TableDraft, writer: Writer) -> None:
    """Write the changed split nodes of streams and partitions, and that they were redirected."""
    splits = {id_: split for id_, split in after.splits.items() if before.splits.get(id_) != split}
    _update(Stream.objects.all(), splits, lambda split: {"split": split})
    changed = {place for place, _ in before.partitions.items() ^ after.partitions.items()}
    own: dict[int, dict[str, int]] = {place.stream: {} for place in changed}
    for place, split in after.partitions.items():
        if place.stream in own:
            own[place.stream][str(place.partition)] = split
    rows = [Stream(pk=stream, partition_splits=splits) for stream, splits in own.items()]
    Stream.objects.bulk_update(rows, ["partition_splits"], batch_size=500)
    now, old, new = timezone.now(), before.assignment, after.assignment
    known = before.splits.keys() & after.splits.keys()
    Redirection.objects.bulk_create(
        Redirection(
            stream_id=place.stream, partition=place.partition, at=now, source=old.of(*place),
            target=new.of(*place), version=writer.version, actor=writer.actor,
            reason=(writer.reason or writer.summary)[:300],
        )
        for place in (*map(SourcePartition, splits), *sorted(changed))
        if place.stream in known and old.of(*place) != new.of(*place)
    )  # fmt: skip


def _write_schemas(before: TableDraft, after: TableDraft) -> None:
    wanted = [
        stream for stream, schema in after.schemas.items() if before.schemas.get(stream) != schema
    ]
    for ids in chunks(wanted):
        rows = list(Stream.objects.filter(pk__in=ids))
        for row in rows:
            old, new = schema_of(row.schema), after.schemas[row.pk]
            row.retired = row.retired if old is None else retired_after(old, new, row.retired)
            row.schema = new.to_json()
        Stream.objects.bulk_update(rows, ["schema", "retired"], batch_size=200)


def _write_drop_rules(
    cluster: Cluster, before: TableDraft, after: TableDraft, writer: Writer
) -> None:
    for edge in before.drop_rules.keys() - after.drop_rules.keys():
        # The rules of a removed query are deleted with it.
        if edge[1] == INPUT or edge[1] in after.queries or edge[1] not in before.queries:
            _rule(edge).delete()
    for edge, rule in after.drop_rules.items():
        if before.drop_rules.get(edge) == rule:
            continue
        columns = {
            "rule": rule.to_json(), "since_version": writer.version, "settles": None,
        }  # fmt: skip
        author = {"set_by": writer.actor, "set_at": timezone.now(), "reason": writer.reason}
        # Weir itself removes old steps of a schedule: the rule is still that of its author.
        if not _rule(edge).update(**columns, **(author if writer.actor else {})):
            stream, query = edge
            Drop.objects.create(
                cluster=cluster, stream_id=stream, query_id=query or None, **columns, **author
            )


def _rule(edge: Edge) -> QuerySet[Drop]:
    stream, query = edge
    return Drop.objects.filter(stream=stream, query=query or None)


def _write_ladder(
    cluster: Cluster, before: Ladder | None, ladder: Ladder | None, writer: Writer
) -> None:
    rows = ArmedLadder.objects.filter(cluster=cluster)
    if ladder is None:
        rows.delete()
        return
    DisarmedLadder.objects.filter(cluster=cluster).delete()
    columns = {"ladder": ladder.to_json(), "since_version": writer.version, "active_until": None}
    # A ladder of which a rung is activated is still that of its author.
    if before is not None and replace(before, least=ladder.least) == ladder:
        rows.update(**columns)
        return
    author = {
        "snapshot_id": writer.snapshot,
        "set_by": writer.actor,
        "set_at": timezone.now(),
        "reason": writer.reason,
    }
    ArmedLadder.objects.update_or_create(cluster=cluster, defaults=columns | author)
