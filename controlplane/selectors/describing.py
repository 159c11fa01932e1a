"""A cluster's rows as a description (controlplane.description)."""

import json
from collections.abc import Mapping
from typing import Any

from controlplane.description.document import (
    FORMAT,
    ClusterDescription,
    ClusterPart,
    MeasuredPart,
    NodePart,
    Place,
    PolicyPart,
    QueryPart,
    SpanPart,
    StreamPart,
    TextPart,
)
from controlplane.models import Cluster, Query, QueryStream, Task
from controlplane.problems.measured import Measured, measured_tasks
from controlplane.services.policies import policy_of
from controlplane.services.policies.changing import settings_of
from controlplane.wire.log import shown as without_password

# Queries on their way out are no part of it.
DESCRIBED = ("pending", "running")


def description_of(cluster: Cluster, *, measures: bool = True) -> ClusterDescription:
    """Return the cluster as it is: what its queries were measured at, too, where that is known.

    Nodes by index, streams by name, queries as they were submitted.
    """
    queries = list(cluster.queries.filter(state__in=DESCRIBED).order_by("id"))
    streams = list(cluster.streams.order_by("name"))
    names = {stream.pk: stream.name for stream in streams}
    measured = measured_tasks(cluster) if measures else {}
    reads = _reads(cluster)
    return ClusterDescription(
        weir=FORMAT,
        cluster=_cluster(cluster),
        nodes=[
            NodePart(
                index=node.index, name=node.name, capacity=node.capacity,
                emulated=node.emulated, active=node.active,
            )
            for node in cluster.nodes.order_by("index")
        ],
        streams=[
            StreamPart(
                name=one.name, title=one.title, declared_rate=one.declared_rate, rate=one.rate,
                split=one.split, schema=one.schema, meta=one.meta,
            )
            for one in streams
        ],
        queries=[_query(query, reads.get(query.pk, []), names, measured) for query in queries],
        placement=_placement(cluster),
        policy=PolicyPart(**settings_of(policy_of(cluster))),
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
    row: dict[str, Any] = json.loads(query.text) if query.text else {}
    right = row.get("right", [])
    computed: dict[str, Any] = {"window_s": query.window_s, "value": query.value}
    if query.text:
        text = TextPart(**row | {"right": [names[one] for one in right]})
        computed = {"text": text, "tasks": query.task_count, "scheme": query.scheme}
    return QueryPart(
        name=query.name,
        streams=[names[stream] for stream in reads if stream not in right],
        ends_at=query.ends_at,
        measured=_measured(query, measured),
        **computed,
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
    ends = [index for index, _ in begins[1:]] + [count]
    return [
        SpanPart(node=node, first=first, past=past)
        for (first, node), past in zip(begins, ends, strict=True)
    ]
