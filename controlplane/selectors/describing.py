"""A cluster's rows as a description (controlplane.description)."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from controlplane.description.document import (
    FORMAT,
    BlackoutPart,
    ClusterDescription,
    ClusterPart,
    DropPart,
    ExclusionPart,
    MeasuredPart,
    NodePart,
    Place,
    PolicyPart,
    QueryPart,
    SchemaPart,
    SpanPart,
    StreamPart,
    TextPart,
)
from controlplane.models import (
    Blackout,
    Cluster,
    Drop,
    Exclusion,
    Node,
    Query,
    QueryStream,
    Stream,
    Task,
)
from controlplane.planning.task_measures import Measured, measured_tasks
from controlplane.policies.exclusions import live_exclusions
from controlplane.policies.store import policy_of
from controlplane.selectors.computations import schema_of
from controlplane.wire.log import without_password
from controlplane.wire.routing import spans_from

# Queries on their way out are no part of it.
DESCRIBED = ("pending", "running")


def description_of(cluster: Cluster, *, measures: bool = True) -> ClusterDescription:
    """Return the cluster as it is: what its queries were measured at, too, where that is known.

    Nodes by index, streams by name, queries as they were submitted. What is over is left out:
    blackouts, exclusions, drops that are being lifted.
    """
    now = timezone.now()
    found = cluster.queries.filter(state__in=DESCRIBED).select_related("merge_node")
    queries = list(found.order_by("id"))
    streams = list(cluster.streams.order_by("name"))
    nodes = list(cluster.nodes.order_by("index"))
    names = {stream.pk: stream.name for stream in streams}
    measured = measured_tasks(cluster) if measures else {}
    reads = _reads(cluster)
    return ClusterDescription(
        weir=FORMAT,
        cluster=_cluster(cluster),
        nodes=[_node(node) for node in nodes],
        streams=[_stream(stream) for stream in streams],
        queries=[_query(query, reads.get(query.pk, []), names, measured) for query in queries],
        placement=_placement(cluster),
        policy=PolicyPart(**policy_of(cluster).model_dump()),
        blackouts=_blackouts(cluster, now),
        exclusions=_exclusions(cluster, now, {
            Exclusion.Kind.QUERY: {query.name for query in queries},
            Exclusion.Kind.NODE: {node.name for node in nodes},
            Exclusion.Kind.STREAM: set(names.values()),
        }),
        drops=_drops(cluster, {None, *(query.pk for query in queries)}),
    )  # fmt: skip


def _node(node: Node) -> NodePart:
    return NodePart(
        index=node.index, name=node.name, capacity=node.capacity, emulated=node.emulated,
        active=node.active,
    )  # fmt: skip


def _stream(one: Stream) -> StreamPart:
    schema = schema_of(one.schema)
    part = None if schema is None else SchemaPart(**schema.to_json())
    return StreamPart(
        name=one.name, title=one.title, declared_rate=one.declared_rate, rate=one.rate,
        split=one.split, schema=part, meta=one.meta,
    )  # fmt: skip


def _cluster(cluster: Cluster) -> ClusterPart:
    row = {name: getattr(cluster, name) for name in ClusterPart.model_fields}
    # A description is handed around: it holds no password.
    return ClusterPart(**row | {"log_url": without_password(cluster.log_url)})


def _reads(cluster: Cluster) -> dict[int, list[int]]:
    """Return the ids of the streams of each query, in the order in which it names them."""
    found: dict[int, list[int]] = {}
    rows = QueryStream.objects.filter(query__cluster=cluster, query__state__in=DESCRIBED)
    for query, stream in rows.order_by("id").values_list("query_id", "stream_id"):
        found.setdefault(query, []).append(stream)
    return found


def _query(
    query: Query, reads: list[int], names: Mapping[int, str], measured: Measured
) -> QueryPart:
    row: dict[str, Any] = json.loads(query.text)
    right = row.get("right", [])
    return QueryPart(
        name=query.name,
        streams=[names[stream] for stream in reads if stream not in right],
        text=TextPart(**row | {"right": [names[one] for one in right]}),
        ends_at=query.ends_at,
        tasks=query.task_count,
        scheme=query.scheme,
        retention_s=query.retention_s,
        retention_windows=query.retention_windows,
        merge_node=None if query.merge_node is None else query.merge_node.index,
        measured=_measured(query, measured),
    )


def _measured(query: Query, measured: Measured) -> MeasuredPart | None:
    known = [measured.get((query.pk, task)) for task in range(query.task_count)]
    if not any(known):
        return None
    return MeasuredPart(
        records_per_s=[round(one.records_per_s, 3) if one else 0.0 for one in known],
        state_bytes=[one.state_bytes if one else 0 for one in known],
    )


def _placement(cluster: Cluster) -> dict[str, Place]:
    rows = Task.objects.filter(query__cluster=cluster, query__state=Query.State.RUNNING)
    columns = ("query__name", "query__task_count", "index", "node__index")
    begins: dict[str, list[tuple[int, int]]] = {}
    counts: dict[str, int] = {}
    for name, count, index, node in rows.order_by("query_id", "index").values_list(*columns):
        begins.setdefault(name, []).append((index, node))
        counts[name] = count
    return {name: _place(found, counts[name]) for name, found in begins.items()}


def _place(begins: list[tuple[int, int]], count: int) -> Place:
    if len(begins) == 1:
        return begins[0][1]
    return [
        SpanPart(node=node, first=first, past=past)
        for node, first, past in spans_from(begins, count)
    ]


def _blackouts(cluster: Cluster, now: datetime) -> list[BlackoutPart]:
    rows = Blackout.objects.filter(cluster=cluster).exclude(cron="", ends_at__lte=now)
    return [
        BlackoutPart(
            cron=row.cron, minutes=row.minutes, starts_at=row.starts_at, ends_at=row.ends_at,
            reason=row.reason,
        )
        for row in rows.order_by("id")
    ]  # fmt: skip


def _exclusions(
    cluster: Cluster, now: datetime, known: Mapping[str, set[str]]
) -> list[ExclusionPart]:
    """Return those that hold of what is described: a query may have ended meanwhile."""
    found = [
        ExclusionPart.model_validate(
            {"kind": row.kind, "subject": row.subject, "until": row.expires_at,
             "reason": row.reason}
        )
        for row in live_exclusions(cluster, now)
        if row.subject in known[row.kind]
    ]  # fmt: skip
    return sorted(found, key=lambda part: part.about)


def _drops(cluster: Cluster, described: set[int | None]) -> list[DropPart]:
    rows = cluster.drops.select_related("stream", "query")
    found = [_drop(row) for row in rows if row.query_id in described]
    return sorted((part for part in found if part is not None), key=lambda part: part.arc)


def _drop(row: Drop) -> DropPart | None:
    """Return what an arc was last told to drop: when it began is of this log's event time."""
    shed = row.value
    share = shed.steps[-1][1]
    if not share:
        return None
    return DropPart(
        stream=row.stream.name,
        query=row.query.name if row.query else "",
        share=share,
        window_s=shed.window_ms / 1000 if shed.window_ms else None,
        slide_s=shed.slide_ms / 1000 if shed.slide_ms != shed.window_ms else None,
        batch=shed.batch,
        reason=row.reason,
    )
