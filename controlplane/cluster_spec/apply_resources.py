"""Nodes and streams of a described cluster: created or updated."""

from collections.abc import Sequence
from typing import Any

from controlplane.access.roles import Actor
from controlplane.cluster_spec.document import NodePart, StreamPart
from controlplane.cluster_spec.report import ImportReport, errors_at, noted
from controlplane.models import Cluster
from controlplane.pagination.chunks import chunks
from controlplane.topology import nodes, streams
from controlplane.topology.apply import Change, apply
from controlplane.topology.streams import StreamSpec
from controlplane.wire.routing.actions import NodeState
from controlplane.wire.routing.cluster_actions import AssignStream


def apply_nodes(
    actor: Actor, cluster: Cluster, parts: Sequence[NodePart], report: ImportReport
) -> None:
    """Create the missing nodes, and update the others."""
    names = dict(cluster.nodes.values_list("index", "name"))
    states = {part.index: NodeState(part.capacity, part.emulated, part.active) for part in parts}
    changed = set(nodes.set_states(actor, cluster, states))
    for part in parts:
        if names.get(part.index) != part.name:
            cluster.nodes.filter(index=part.index).update(name=part.name)
            changed.add(part.index)
    noted(report.created, "nodes", [part.name for part in parts if part.index not in names])
    noted(
        report.changed,
        "nodes",
        [part.name for part in parts if part.index in names and part.index in changed],
    )


def apply_streams(
    actor: Actor,
    cluster: Cluster,
    parts: Sequence[StreamPart],
    before: Sequence[StreamPart],
    report: ImportReport,
) -> None:
    """Register the missing streams, and update the declared fields of the others."""
    known = {part.name: part for part in before}
    wanted = [
        (index, part) for index, part in enumerate(parts) if _differs(part, known.get(part.name))
    ]
    for chunk in chunks(wanted, streams.MAX_SPECS):
        with errors_at("streams", [index for index, _ in chunk]):
            streams.register(actor, cluster, [stream_spec(part) for _, part in chunk])
    new = [part for _, part in wanted if part.name not in known]
    for part in new:
        if part.rate is not None:
            # Until the pipeline has measured its own.
            cluster.streams.filter(name=part.name).update(rate=part.rate)
    _assign_splits(actor, cluster, parts)
    noted(report.created, "streams", [part.name for part in new])
    noted(report.changed, "streams", [part.name for _, part in wanted if part.name in known])


def _differs(part: StreamPart, known: StreamPart | None) -> bool:
    if known is None:
        return True
    ours: dict[str, Any] = {"rate": None, "split": None}
    if part.data_schema is None:
        # Without columns in the document, they are unchanged.
        ours["data_schema"] = None
    moved = part.split not in (None, known.split)
    return moved or part.model_copy(update=ours) != known.model_copy(update=ours)


def stream_spec(part: Any) -> StreamSpec:
    """Return the stream of a part of a description, or of a request with these attributes."""
    schema = {} if part.data_schema is None else part.data_schema.model_dump()
    return StreamSpec(part.name, part.title, schema, part.declared_rate, part.meta)


def _assign_splits(actor: Actor, cluster: Cluster, parts: Sequence[StreamPart]) -> None:
    """Assign streams to split nodes as described."""
    known = {stream.name: stream for stream in cluster.streams.all()}
    moved = [
        (known[part.name], part.split)
        for part in parts
        if part.split is not None and known[part.name].split != part.split
    ]
    if not moved:
        return
    cluster.refresh_from_db(fields=["routing_version"])
    actions = [AssignStream(stream.pk, split) for stream, split in moved]
    summary = f"{len(actions)} streams assigned to split nodes"
    apply(cluster, actions, Change(summary, author=actor.name))
