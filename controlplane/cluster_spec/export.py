"""Export of a cluster as a description."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.utils import timezone

from controlplane.catalog.computations import schema_of
from controlplane.cluster_spec.connection_parts import DocumentPart, SinkPart, SourcePart
from controlplane.cluster_spec.document import (
    FORMAT,
    BlackoutPart,
    CharacteristicsPart,
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
    StreamPart,
    TaskRangePart,
    TextPart,
)
from controlplane.cluster_spec.ladder import ladder_part
from controlplane.models import (
    Blackout,
    Cluster,
    Drop,
    Exclusion,
    Query,
    QueryStream,
    Sink,
    Stream,
    Task,
)
from controlplane.planning.snapshots import Measured, measured_tasks, measures_of_tasks
from controlplane.policies.exclusions import live_exclusions
from controlplane.policies.store import policy_of
from controlplane.queries.spec import submitted_values
from controlplane.wire.redaction import without_password
from controlplane.wire.routing.route import TaskRange

P = TypeVar("P", bound=DocumentPart)
# Queries on their way out are not part of it.
DESCRIBED = ("pending", "running")


def description_of(cluster: Cluster, *, measures: bool = True) -> ClusterDescription:
    """Return the description of a cluster, with the measures of its queries if they are known.

    Nodes by index, streams by name, queries as they were submitted. What is over is left out:
    blackouts, exclusions, drops that are being lifted.
    """
    now = timezone.now()
    selected = cluster.queries.filter(state__in=DESCRIBED).select_related("aggregator")
    queries = list(selected.order_by("id"))
    streams = list(cluster.streams.order_by("name"))
    nodes = list(cluster.nodes.order_by("index"))
    names = {stream.pk: stream.name for stream in streams}
    measured = measured_tasks(cluster) if measures else {}
    reads = _reads(cluster)
    return ClusterDescription(
        weir=FORMAT,
        # A description is handed around: it holds no password.
        cluster=_part(ClusterPart, cluster, log_url=without_password(cluster.log_url)),
        nodes=[_part(NodePart, node) for node in nodes],
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
        drops=_drop_rules(cluster, {None, *(query.pk for query in queries)}),
        ladder=ladder_part(cluster, names, {query.pk: query.name for query in queries}),
        sinks=_sinks(queries),
    )  # fmt: skip


def _part(kind: type[P], row: Any, **values: Any) -> P:
    """Return the part of a row: the given values, and the row's attributes of the other names."""
    own = {name: getattr(row, name) for name in kind.model_fields if name not in values}
    return kind(**own, **values)


def _stream(stream: Stream) -> StreamPart:
    schema = schema_of(stream.schema)
    part = None if schema is None else SchemaPart(**schema.to_json())
    known = stream.characteristics
    characteristics = CharacteristicsPart(**known) if known else None
    source = SourcePart(**stream.source) if stream.source else None
    return _part(
        StreamPart, stream, data_schema=part, characteristics=characteristics, source=source
    )


def _reads(cluster: Cluster) -> dict[int, list[int]]:
    """Return the stream ids by query, in the order of the query."""
    rows = QueryStream.objects.filter(query__cluster=cluster, query__state__in=DESCRIBED)
    return QueryStream.by_query(rows.order_by("id"))


def _query(
    query: Query, reads: list[int], names: Mapping[int, str], measured: Measured
) -> QueryPart:
    row: dict[str, Any] = json.loads(query.text)
    right = row.get("right", [])
    return QueryPart(
        **submitted_values(query),
        streams=[names[stream] for stream in reads if stream not in right],
        text=TextPart(**row | {"right": [names[name] for name in right]}),
        aggregator=None if query.aggregator is None else query.aggregator.index,
        more_aggregators=query.more_aggregators,
        measured=_measured(query, measured),
    )


def _measured(query: Query, measured: Measured) -> MeasuredPart | None:
    if not any((query.pk, task) in measured for task in range(query.task_count)):
        return None
    evaluations_per_s, state_bytes = measures_of_tasks(query.pk, query.task_count, measured)
    return MeasuredPart(evaluations_per_s=evaluations_per_s, state_bytes=state_bytes)


def _placement(cluster: Cluster) -> dict[str, Place]:
    rows = Task.objects.filter(query__cluster=cluster, query__state=Query.State.RUNNING)
    return {name: _place(ranges) for name, ranges in Task.ranges(rows, "query__name").items()}


def _place(ranges: Sequence[TaskRange]) -> Place:
    if len(ranges) == 1:
        return ranges[0][0]
    return [TaskRangePart(node=node, first=first, stop=stop) for node, first, stop in ranges]


def _blackouts(cluster: Cluster, now: datetime) -> list[BlackoutPart]:
    rows = Blackout.objects.filter(cluster=cluster).exclude(cron="", ends_at__lte=now)
    return [_part(BlackoutPart, row) for row in rows.order_by("id")]


def _exclusions(
    cluster: Cluster, now: datetime, known: Mapping[str, set[str]]
) -> list[ExclusionPart]:
    """Return the exclusions of described objects that have not expired."""
    rows = [row for row in live_exclusions(cluster, now) if row.subject in known[row.kind]]
    parts = [_part(ExclusionPart, row, until=row.expires_at) for row in rows]
    return sorted(parts, key=lambda part: part.about)


def _sinks(queries: Sequence[Query]) -> list[SinkPart]:
    names = {query.pk: query.name for query in queries}
    rows = Sink.objects.filter(query__in=list(names))
    parts = [_part(SinkPart, row, query=names[row.query_id]) for row in rows]
    return sorted(parts, key=lambda part: (part.query, part.name))


def _drop_rules(cluster: Cluster, described: set[int | None]) -> list[DropPart]:
    rows = cluster.drops.select_related("stream", "query")
    parts = [_drop_rule(row) for row in rows if row.query_id in described]
    return sorted((part for part in parts if part is not None), key=lambda part: part.edge)


def _drop_rule(row: Drop) -> DropPart | None:
    """Return the newest step of a drop rule, without its start, which depends on the log."""
    rule = row.value
    share = rule.steps[-1][1]
    if not share:
        return None
    return DropPart(
        stream=row.stream.name,
        query=row.query.name if row.query else "",
        share=share,
        window_s=rule.window_ms / 1000 if rule.window_ms else None,
        slide_s=rule.slide_ms / 1000 if rule.slide_ms != rule.window_ms else None,
        batch=rule.batch,
        reason=row.reason,
    )
