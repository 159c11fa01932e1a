"""The routing table: appending versions, publishing them in order, healing a Redis that lost them.

A version is decided in the database, by a conditional update of Cluster.routing_version that must
change exactly one row, and published after the commit. What could not be published then is
published by the beat's task within seconds.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from controlplane.after_commit import after_commit
from controlplane.connections import redis_client
from controlplane.errors import Conflict, VersionMoved
from controlplane.models import (
    Cluster,
    Drop,
    Incident,
    Proposal,
    QueryStream,
    RoutingVersion,
    Stream,
    Task,
)
from controlplane.selectors.computations import schema_of
from controlplane.services.events import announce, event
from controlplane.wire.errors import RoutingGap, RoutingMissing
from controlplane.wire.publish import SNAPSHOT_EVERY, latest_version, publish, publish_snapshot
from controlplane.wire.routing import (
    NOBODY,
    Op,
    Route,
    RoutingDelta,
    RoutingTable,
    SetNodes,
    Span,
    op_from_json,
    op_to_json,
    spans_from,
)
from controlplane.wire.schema import StreamSchema
from controlplane.wire.schemes import scheme_text
from controlplane.wire.shedding import Arc, Shed

logger = logging.getLogger(__name__)

T = TypeVar("T")
# Every lost race means that another writer got its version in; twenty in a row is a sick system.
TRIES = 20


def retry_when_moved(work: Callable[[], T]) -> T:
    """Return what work does in a transaction of its own, begun again when the version moved."""
    for _ in range(TRIES):
        try:
            with transaction.atomic():
                return work()
        except VersionMoved as moved:
            logger.info("%s: trying again", moved)
    raise Conflict("busy", "The routing table changes too quickly; try again")


def append(
    cluster_id: int,
    expected: int,
    ops: Sequence[Op],
    reason: str,
    *,
    actor: str = "",
    proposal: Proposal | None = None,
) -> RoutingVersion:
    """Write version expected + 1 in the caller's transaction and publish it after the commit.

    Raises `VersionMoved` if another writer was first: everything read since is out of date.
    """
    if expected == 0:
        # The first version says how many nodes there are; later ones say it when that changes.
        ops = [SetNodes(_nodes(cluster_id)), *ops]
    version = expected + 1
    claimed = Cluster.objects.filter(pk=cluster_id, routing_version=expected)
    if claimed.update(routing_version=version) != 1:
        raise VersionMoved(expected)
    row = RoutingVersion.objects.create(
        cluster_id=cluster_id,
        version=version,
        ops=[op_to_json(op) for op in ops],
        reason=reason[:300],
        actor=actor,
        proposal=proposal,
    )
    after_commit("publish the routing", partial(publish_unpublished, cluster_id))
    announce(cluster_id, event("routing", reason, version=version))
    return row


def publish_unpublished(cluster_id: int) -> int:
    """Publish the versions that are not yet, in order; returns how many there were.

    A Redis that lost versions in between gets a snapshot of the whole table instead. Nothing is
    published while an administrator has to decide about a loss. Raises `RoutingTaken`.
    """
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None or cluster.incidents.filter(state=Incident.State.UNDECIDED).exists():
        return 0
    waiting = cluster.routing_versions.filter(published_at=None).order_by("version")
    published = 0
    for row in waiting:
        try:
            publish(redis_client(), cluster.slug, delta_of(row))
        except (RoutingGap, RoutingMissing) as lost:
            logger.warning("%s: publishing the whole table of %s", lost, cluster.slug)
            return published + republish(cluster)
        _mark_published(cluster, row.version)
        published += 1
    return published


def republish(cluster: Cluster) -> int:
    """Publish the whole table as a snapshot; returns how many waiting versions it covers.

    The versions that a begun micro-batch may run under are published, too.
    """
    table = current_table(cluster.pk)
    _republish_applied(cluster, table.version)
    publish_snapshot(redis_client(), cluster.slug, table)
    return _mark_published(cluster, table.version)


def _republish_applied(cluster: Cluster, newest: int) -> None:
    """Publish the versions from a little below the newest applied one on.

    Spark runs a micro-batch that was begun under the version that it was planned with, and takes
    in what tasks handed on since an earlier one. Without these tables it could never finish. Where
    old versions are pruned, or void, they cannot be computed: then there is the newest table alone.
    """
    applied = Cluster.objects.values_list("applied_version", flat=True).get(pk=cluster.pk)
    low = max(0, applied - SNAPSHOT_EVERY)
    rows = cluster.routing_versions.filter(version__lte=newest).order_by("version")
    if newest <= low or rows.count() != newest:
        return
    table = RoutingTable().apply(*(delta_of(row) for row in rows[:low].iterator()))
    publish_snapshot(redis_client(), cluster.slug, table)
    for row in rows[low:].iterator():
        publish(redis_client(), cluster.slug, delta_of(row))


def heal(cluster: Cluster) -> bool:
    """Republish the table if Redis has lost what was published; tells whether it had."""
    published = cluster.routing_versions.filter(published_at__isnull=False)
    newest = published.aggregate(newest=Max("version"))["newest"]
    if newest is None:
        return False
    found = latest_version(redis_client(), cluster.slug)
    if found is not None and found >= newest:
        return False
    logger.warning("Redis has routing version %s of %s, not %s", found, cluster.slug, newest)
    republish(cluster)
    return True


def delta_of(row: RoutingVersion) -> RoutingDelta:
    """Return the wire's delta of a stored version."""
    return RoutingDelta(row.version, tuple(op_from_json(op) for op in row.ops))


def current_table(cluster_id: int) -> RoutingTable:
    """Return the whole table as the rows have it, consistent with one version.

    Raises `Conflict` if it changes under the reader again and again.
    """
    for _ in range(TRIES):
        version = _version(cluster_id)
        table = _read_table(cluster_id, version)
        if _version(cluster_id) == version:
            return table
    raise Conflict("busy", "The routing table changes too quickly; try again")


def is_at(cluster_id: int, version: int) -> bool:
    """Tell whether the routing is still at a version, so that reads around it fit together."""
    return _version(cluster_id) == version


def _version(cluster_id: int) -> int:
    return Cluster.objects.values_list("routing_version", flat=True).get(pk=cluster_id)


def _read_table(cluster_id: int, version: int) -> RoutingTable:
    streams: dict[int, list[int]] = {}
    routed = QueryStream.objects.filter(query__cluster=cluster_id, query__tasks__index=0)
    for query, stream in routed.order_by("id").values_list("query_id", "stream_id"):
        streams.setdefault(query, []).append(stream)
    spans = _spans(cluster_id)
    columns = (
        "query_id", "query__run", "node__index", "query__text", "query__scheme",
        "query__merge_node__index",
    )  # fmt: skip
    first = Task.objects.filter(query__cluster=cluster_id, index=0)
    queries = {
        query: Route(
            run,
            node,
            tuple(sorted(streams.get(query, ()))),
            text,
            spans.get(query, ()),
            scheme_text(scheme),
            NOBODY if merge is None else merge,
        )
        for query, run, node, text, scheme, merge in first.values_list(*columns)
    }
    splits, schemas = _streams(cluster_id)
    capacities, sheds = _capacities(cluster_id), _sheds(cluster_id)
    nodes = _nodes(cluster_id)
    return RoutingTable(version, queries, splits, capacities, sheds, nodes, schemas)


def _spans(cluster_id: int) -> dict[int, tuple[Span, ...]]:
    """Return the intervals of tasks of the queries that are split."""
    split = Task.objects.filter(query__cluster=cluster_id, query__task_count__gt=1)
    columns = ("query_id", "query__task_count", "index", "node__index")
    begins: dict[int, list[tuple[int, int]]] = {}
    counts: dict[int, int] = {}
    for query, count, index, node in split.order_by("query_id", "index").values_list(*columns):
        begins.setdefault(query, []).append((index, node))
        counts[query] = count
    return {query: spans_from(found, counts[query]) for query, found in begins.items()}


def _streams(cluster_id: int) -> tuple[dict[int, int], dict[int, StreamSchema]]:
    """Return the split node of each stream, and the schema of each that has one."""
    rows = Stream.objects.filter(cluster=cluster_id).values_list("id", "split", "schema")
    splits, schemas = {}, {}
    for stream, split, row in rows:
        splits[stream] = split
        if (schema := schema_of(row)) is not None:
            schemas[stream] = schema
    return splits, schemas


def _nodes(cluster_id: int) -> int:
    return Cluster.objects.values_list("slots", flat=True).get(pk=cluster_id)


def _capacities(cluster_id: int) -> dict[int, float]:
    """Return the records/s of the nodes that are held to them."""
    held = Cluster.objects.get(pk=cluster_id).nodes.filter(emulated=True)
    return dict(held.values_list("index", "capacity"))


def _sheds(cluster_id: int) -> dict[Arc, Shed]:
    """Return what arcs drop."""
    return {drop.arc: drop.value for drop in Drop.objects.filter(cluster=cluster_id)}


def _mark_published(cluster: Cluster, version: int) -> int:
    waiting = cluster.routing_versions.filter(version__lte=version, published_at=None)
    return waiting.update(published_at=timezone.now())
