"""Nodes and streams of a described cluster: made, or brought up to date."""

from collections.abc import Sequence
from typing import Any

from controlplane.description.document import NodePart, StreamPart
from controlplane.models import Cluster, Node
from controlplane.services import audit, nodes, routing, streams
from controlplane.services.access import Actor
from controlplane.services.importing.report import Imported, chunks, noted, told_at
from controlplane.services.streams import StreamSpec
from controlplane.wire.routing import AssignStream, SetCapacity


def bring_nodes(
    actor: Actor, cluster: Cluster, parts: Sequence[NodePart], report: Imported
) -> None:
    """Make the nodes that are not there, and bring the others up to date."""
    known = {node.index: node for node in cluster.nodes.all()}
    new = [Node(cluster=cluster, **part.model_dump()) for part in parts if part.index not in known]
    Node.objects.bulk_create(new)
    held = [SetCapacity(node.index, node.capacity) for node in new if node.emulated]
    if held:
        cluster.refresh_from_db(fields=["routing_version"])
        told = f"{len(held)} nodes are held to their capacity"
        routing.append(cluster.pk, cluster.routing_version, held, told, actor=actor.name)
    noted(report.created, "nodes", [node.name for node in new])
    changed = [
        part.name
        for part in parts
        if part.index in known and _changed_node(actor, known[part.index], part)
    ]
    noted(report.changed, "nodes", changed)


def _changed_node(actor: Actor, node: Node, part: NodePart) -> bool:
    before = {"name": node.name, "active": node.active}
    after = {"name": part.name, "active": part.active}
    if before != after:
        node.name, node.active = part.name, part.active
        node.save(update_fields=["name", "active"])
        told = f"{node.cluster.slug}/{node.name}"
        audit.record(actor, "node.change", told, cluster=node.cluster, before=before, after=after)
    faster = (node.capacity, node.emulated) != (part.capacity, part.emulated)
    if faster:
        nodes.set_capacity(actor, node, part.capacity, emulated=part.emulated)
    return faster or before != after


def bring_streams(
    actor: Actor,
    cluster: Cluster,
    parts: Sequence[StreamPart],
    before: Sequence[StreamPart],
    report: Imported,
) -> None:
    """Register the streams that are not there, and what is declared anew of the others."""
    known = {part.name: part for part in before}
    wanted = [(at, part) for at, part in enumerate(parts) if _differs(part, known.get(part.name))]
    for chunk in chunks(wanted, streams.MAX_SPECS):
        with told_at("streams", [at for at, _ in chunk]):
            streams.register(actor, cluster, [_stream_spec(part) for _, part in chunk])
    new = [part for _, part in wanted if part.name not in known]
    for part in new:
        if part.rate is not None:
            # Until the pipeline has measured its own.
            cluster.streams.filter(name=part.name).update(rate=part.rate)
    _splits(actor, cluster, parts)
    noted(report.created, "streams", [part.name for part in new])
    noted(report.changed, "streams", [part.name for _, part in wanted if part.name in known])


def _differs(part: StreamPart, known: StreamPart | None) -> bool:
    if known is None:
        return True
    ours: dict[str, Any] = {"rate": None, "split": None}
    if part.data_schema is None:
        # A document that says nothing of the columns leaves them as they are.
        ours["data_schema"] = None
    moved = part.split not in (None, known.split)
    return moved or part.model_copy(update=ours) != known.model_copy(update=ours)


def _stream_spec(part: StreamPart) -> StreamSpec:
    schema = {} if part.data_schema is None else part.data_schema.model_dump()
    return StreamSpec(part.name, part.title, schema, part.declared_rate, part.meta)


def _splits(actor: Actor, cluster: Cluster, parts: Sequence[StreamPart]) -> None:
    """Let the split nodes read the streams that the description gives them."""
    known = {stream.name: stream for stream in cluster.streams.all()}
    moved = [
        (known[part.name], part.split)
        for part in parts
        if part.split is not None and known[part.name].split != part.split
    ]
    if not moved:
        return
    for stream, split in moved:
        cluster.streams.filter(pk=stream.pk).update(split=split)
    cluster.refresh_from_db(fields=["routing_version"])
    ops = [AssignStream(stream.pk, split) for stream, split in moved]
    told = f"{len(ops)} streams assigned to split nodes"
    routing.append(cluster.pk, cluster.routing_version, ops, told, actor=actor.name)
