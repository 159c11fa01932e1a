"""Split nodes of a cluster: their capacity, and redirections of streams by people."""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.split_reading import assignment_of, partition_parts, required_parts
from controlplane.errors import Invalid
from controlplane.models import Cluster, Stream
from controlplane.policies.store import policy_of
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.nodes import MAX_CAPACITY
from controlplane.topology.versions import retry_when_moved
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import (
    AssignPartition,
    AssignStream,
    SetSplitCapacity,
    SetSplitCount,
)
from controlplane.wire.routing.split_assignment import SourcePartition, SplitAssignment
from controlplane.wire.topics.places import MOST_TOPICS, STRIDE

# The audit code of redirections.
REDIRECT: Final = "streams.redirect"


@retry_when_moved
def set_split_capacity(
    actor: Actor, cluster: Cluster, capacity: float, *, emulated: bool, reason: str = ""
) -> Cluster:
    """Declare the records/s of each split node, 0 for none, and whether each is limited to it.

    Takes effect with the next micro-batch. Raises `Forbidden`, `Invalid`.
    """
    require_operator(actor, cluster)
    if not (math.isfinite(capacity) and 0 <= capacity <= MAX_CAPACITY):
        message = f"Must be from 0 (measured) to {MAX_CAPACITY:,.0f} records/s"
        raise Invalid({"split_capacity": [message]})
    if emulated and not capacity:
        raise Invalid({"split_emulated": ["Needs a capacity above 0"]})
    cluster.refresh_from_db()
    present = cluster.split_capacity, cluster.split_emulated
    if present == (capacity, emulated):
        return cluster
    text = (
        f"{capacity:,.0f} records/s{', emulated' if emulated else ''}" if capacity else "measured"
    )
    names = ("split_capacity", "split_emulated")
    change = TopologyChange(
        f"capacity of split nodes of {cluster.slug}: {text}", "cluster.split_capacity",
        cluster.slug, reason, dict(zip(names, present, strict=True)),
        dict(zip(names, (capacity, emulated), strict=True)),
    )  # fmt: skip
    apply(cluster, [SetSplitCapacity(capacity, emulated)], change, actor=actor)
    cluster.refresh_from_db()
    return cluster


def redirect(
    actor: Actor, stream: Stream, split: int, reason: str = "", partition: int | None = None
) -> Stream:
    """Redirect a stream to a split node, which is opened if it has no stream.

    `partition`: only one of its source, by number; None: of a source with several partitions, the
    first split node of the round-robin of the partitions without an assignment. All others stay
    where they are, though a further split node changes the round-robin. The periodic
    admission may redirect it again, unless the stream is excluded from plans. Raises
    `Forbidden`, `Invalid`, and `Away` if partitions may have to stay and are not known.
    """
    require_operator(actor, stream.cluster)
    # Before the transaction: Redis is asked.
    read = required_parts if split >= stream.cluster.splits else partition_parts
    parts = read(stream.cluster)
    return _redirect(actor, stream, split, reason, partition, parts)


@retry_when_moved
def _redirect(
    actor: Actor,
    stream: Stream,
    split: int,
    reason: str,
    partition: int | None,
    parts: Mapping[int, Collection[int]],
) -> Stream:
    cluster = Cluster.objects.get(pk=stream.cluster_id)
    most = max(policy_of(cluster).split_nodes, cluster.splits)
    if not 0 <= split < most:
        raise Invalid({"split": [f"Must be from 0 to {most - 1}"]})
    stream.refresh_from_db()
    if partition is not None and not stream.source:
        raise Invalid({"partition": ["Only a stream with a source has partitions"]})
    if partition is not None and not 0 <= partition < MOST_TOPICS * STRIDE:
        raise Invalid({"partition": [f"Must be from 0 to {MOST_TOPICS * STRIDE - 1}"]})
    place = SourcePartition(stream.pk, partition)
    present, name = stream.assignment.of(*place), stream.name
    if present == split:
        return stream
    actions: list[Action] = [AssignStream(stream.pk, split)]
    if partition is not None:
        actions, name = [AssignPartition(stream.pk, partition, split)], f"{place.text} of {name}"
    if split >= cluster.splits:
        now = assignment_of(cluster)
        # The round-robin changes with the number of split nodes.
        staying = _assigned(now, replace(now, count=split + 1), parts, place)
        actions = [*staying, SetSplitCount(split + 1), *actions]
    summary = f"{name} redirected from split node {present} to {split}"
    before, after = {"split": present}, {"split": split}
    change = TopologyChange(summary, REDIRECT, stream.name, reason, before, after, stream.pk)
    apply(cluster, actions, change, actor=actor)
    stream.refresh_from_db()
    return stream


def _assigned(
    now: SplitAssignment,
    after: SplitAssignment,
    parts: Mapping[int, Collection[int]],
    moved: SourcePartition,
) -> list[AssignPartition]:
    """Return what keeps the partitions of streams where they are, but `moved`, or its stream."""
    return [
        AssignPartition(stream, number, now.of(stream, number))
        for stream, own in parts.items()
        for number in own
        if after.of(stream, number) != now.of(stream, number)
        and moved not in {(stream, number), (stream, None)}
    ]
