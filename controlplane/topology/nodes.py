"""Nodes of a cluster: how many there are, what each can process, and which take work."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.errors import Conflict, Invalid
from controlplane.models import Cluster, Node, Task
from controlplane.services.access import Actor, require_operator
from controlplane.topology.aggregators import merged_by
from controlplane.topology.apply import Change, apply
from controlplane.topology.versions import retry_when_moved
from controlplane.wire.routing import Action, NodeState, SetCapacity, SetNodeActive, SetNodeCount

# Ten million records/s is beyond any node; a larger number is a slip of the keyboard.
MAX_CAPACITY: Final = 1e7
# Each node has a grouping key, a state and a row per micro-batch; more is a slip of the keyboard.
MAX_NODES: Final = 1000
# Records/s of a node of a cluster without other nodes.
DEFAULT_CAPACITY: Final = 500.0


@dataclass(frozen=True)
class NodeCount:
    """The number of nodes before and after a change."""

    before: int
    after: int


def set_capacity(
    actor: Actor, node: Node, capacity: float, reason: str = "", *, emulated: bool | None = None
) -> Node:
    """Declare the records/s of a node, and whether it is limited to them (None: as before).

    An emulated capacity takes effect with the next micro-batch. Raises `Forbidden`, `Invalid`.
    """
    require_operator(actor, node.cluster)
    if not (math.isfinite(capacity) and 0 < capacity <= MAX_CAPACITY):
        raise Invalid({"capacity": [f"Must be above 0 and at most {MAX_CAPACITY:,.0f} records/s"]})
    return retry_when_moved(lambda: _set_capacity(actor, node, capacity, emulated, reason))


def set_active(actor: Actor, node: Node, active: bool, reason: str = "") -> Node:
    """Let planners assign work to a node, or not; what it has stays. Raises `Forbidden`."""
    require_operator(actor, node.cluster)
    return retry_when_moved(lambda: _set_active(actor, node, active, reason))


def set_states(actor: Actor, cluster: Cluster, states: Mapping[int, NodeState]) -> list[int]:
    """Give nodes these states, in one change; return the indices of those that had another.

    Raises `Forbidden`.
    """
    require_operator(actor, cluster)
    return retry_when_moved(lambda: _set_states(actor, cluster, states))


def check_count(actor: Actor, cluster: Cluster, nodes: int) -> None:
    """Raise unless the nodes that would be removed are inactive, and have and aggregate nothing.

    Raises `Forbidden`, `Invalid`, `Conflict`.
    """
    require_operator(actor, cluster)
    if not 1 <= nodes <= MAX_NODES:
        raise Invalid({"nodes": [f"Must be from 1 to {MAX_NODES}"]})
    removed = Node.objects.filter(cluster=cluster, index__gte=nodes)
    active = list(removed.filter(active=True).values_list("name", flat=True))
    if active:
        text = f"{', '.join(active)} would be removed: set them inactive first"
        raise Conflict("node_active", text, {"nodes": active})
    with_tasks = removed.filter(tasks__in=Task.objects.all()).distinct()
    if hosts := list(with_tasks.values_list("name", flat=True)):
        text = f"{', '.join(hosts)} would be removed with queries: move these by a proposal first"
        raise Conflict("node_hosts", text, {"nodes": hosts})
    if merged := merged_by(list(removed)):
        text = (
            f"A node that would be removed merges {', '.join(merged)}: let another node merge them"
        )
        raise Conflict("node_merges", text, {"queries": merged})


def set_count(actor: Actor, cluster: Cluster, nodes: int, reason: str = "") -> NodeCount:
    """Change the number of nodes; it takes effect with the next micro-batch.

    A new node is active and has the capacity of the slowest one. The row of a removed node stays,
    inactive: samples refer to it. Raises as `check_count` does.
    """
    return retry_when_moved(lambda: _set_count(actor, cluster, nodes, reason))


def state_of(node: Node) -> NodeState:
    """Return what the routing table has of a node."""
    return NodeState(node.capacity, node.emulated, node.active)


def _set_capacity(
    actor: Actor, node: Node, capacity: float, emulated: bool | None, reason: str
) -> Node:
    _refresh(node)
    before = {"capacity": node.capacity, "emulated": node.emulated}
    held = node.emulated if emulated is None else emulated
    summary = f"{node.name} can carry {capacity:,.0f} records/s"
    if held or node.emulated:
        summary += ", and is held to that" if held else ", and is not held to it any more"
    change = Change(
        summary, "node.capacity", f"{node.cluster.slug}/{node.name}", reason, before,
        {"capacity": capacity, "emulated": held}, node.pk,
    )  # fmt: skip
    apply(node.cluster, [SetCapacity(node.index, capacity, held)], change, actor=actor)
    node.capacity, node.emulated = capacity, held
    return node


def _set_active(actor: Actor, node: Node, active: bool, reason: str) -> Node:
    _refresh(node)
    if node.active == active:
        return node
    change = Change(
        f"{node.name} is {'active' if active else 'inactive'}", "node.active",
        f"{node.cluster.slug}/{node.name}", reason, {"active": node.active}, {"active": active},
        node.pk,
    )  # fmt: skip
    apply(node.cluster, [SetNodeActive(node.index, active)], change, actor=actor)
    node.active = active
    return node


def _refresh(node: Node) -> None:
    # The version first: what changes after it makes the write of the next version fail.
    node.cluster.refresh_from_db(fields=["routing_version", "slots"])
    node.refresh_from_db()


def _set_states(actor: Actor, cluster: Cluster, states: Mapping[int, NodeState]) -> list[int]:
    cluster.refresh_from_db(fields=["routing_version", "slots"])
    known = {node.index: state_of(node) for node in cluster.nodes.all()}
    changed = sorted(index for index, state in states.items() if known.get(index) != state)
    if not changed:
        return []
    actions: list[Action] = []
    missing = [index for index in changed if index not in known]
    if missing:
        actions.append(SetNodeCount(cluster.slots, states[missing[0]].capacity))
    for index in changed:
        state = states[index]
        actions += [
            SetCapacity(index, state.capacity, state.emulated),
            SetNodeActive(index, state.active),
        ]
    change = Change(
        f"{len(changed)} nodes configured", "nodes.change", cluster.slug,
        before={str(index): _told(known.get(index)) for index in changed},
        after={str(index): _told(states[index]) for index in changed},
    )  # fmt: skip
    apply(cluster, actions, change, actor=actor)
    return changed


def _told(state: NodeState | None) -> dict[str, float | bool] | None:
    if state is None:
        return None
    return {"capacity": state.capacity, "emulated": state.emulated, "active": state.active}


def _set_count(actor: Actor, cluster: Cluster, nodes: int, reason: str) -> NodeCount:
    cluster.refresh_from_db(fields=["routing_version", "slots"])
    check_count(actor, cluster, nodes)
    count = NodeCount(cluster.slots, nodes)
    there = dict(cluster.nodes.filter(index__lt=nodes).values_list("index", "capacity"))
    if count.before == count.after and len(there) == nodes:
        return count
    change = Change(
        f"{cluster.name} has {nodes} nodes", "cluster.nodes", cluster.slug, reason,
        {"nodes": count.before}, {"nodes": nodes},
    )  # fmt: skip
    capacity = min(there.values(), default=DEFAULT_CAPACITY)
    apply(cluster, [SetNodeCount(nodes, capacity)], change, actor=actor)
    return count
