"""Nodes of a cluster: how many there are, what each can process, and which take work."""

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Conflict, Invalid
from controlplane.models import Cluster, Node, Task
from controlplane.topology.aggregators import queries_aggregated_by
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.versions import retry_when_moved
from controlplane.wire.routing.actions import Action, NodeState
from controlplane.wire.routing.cluster_actions import SetCapacity, SetNodeActive, SetNodeCount

# Ten million records/s is beyond any node; a larger number is a slip of the keyboard.
MAX_CAPACITY: Final = 1e7
# Each node has a grouping key, a state and a row per micro-batch; more is a slip of the keyboard.
MAX_NODES: Final = 1000
# Records/s of a node of a cluster without other nodes.
DEFAULT_CAPACITY: Final = 500.0


@retry_when_moved
def configure(
    actor: Actor,
    node: Node,
    reason: str = "",
    *,
    capacity: float | None = None,
    emulated: bool | None = None,
    active: bool | None = None,
) -> Node:
    """Set the capacity of a node (records/s), whether it is limited to it, whether it is active.

    What is None stays. An emulated capacity takes effect with the next micro-batch; planners assign
    no work to an inactive node, and what it has stays there. Raises `Forbidden`, `Invalid`.
    """
    require_operator(actor, node.cluster)
    if capacity is not None and not (math.isfinite(capacity) and 0 < capacity <= MAX_CAPACITY):
        raise Invalid({"capacity": [f"Must be above 0 and at most {MAX_CAPACITY:,.0f} records/s"]})
    given: dict[str, Any] = {"capacity": capacity, "emulated": emulated, "active": active}
    changes = {name: value for name, value in given.items() if value is not None}
    # The version first: what changes after it makes the write of the next version fail.
    node.cluster.refresh_from_db(fields=["routing_version", "slots"])
    node.refresh_from_db()
    before = {name: getattr(node, name) for name in changes}
    if before == changes:
        return node
    present, state = state_of(node), replace(state_of(node), **changes)
    change = TopologyChange(
        _summary(node.name, present, state), "node.change",
        f"{node.cluster.slug}/{node.name}", reason, before, changes, node.pk,
    )  # fmt: skip
    apply(node.cluster, _actions(node.index, present, state), change, actor=actor)
    for name, value in changes.items():
        setattr(node, name, value)
    return node


@retry_when_moved
def set_states(actor: Actor, cluster: Cluster, states: Mapping[int, NodeState]) -> list[int]:
    """Give nodes these states, in one change; return the indices of the changed ones.

    Raises `Forbidden`.
    """
    require_operator(actor, cluster)
    cluster.refresh_from_db(fields=["routing_version", "slots"])
    known = {node.index: state_of(node) for node in cluster.nodes.all()}
    changed = sorted(index for index, state in states.items() if known.get(index) != state)
    if not changed:
        return []
    actions: list[Action] = []
    missing = [index for index in changed if index not in known]
    created = NodeState(states[missing[0]].capacity if missing else DEFAULT_CAPACITY)
    if missing:
        actions.append(SetNodeCount(cluster.slots, created.capacity))
    for index in changed:
        actions += _actions(index, known.get(index, created), states[index])
    change = TopologyChange(
        f"{len(changed)} nodes configured", "nodes.change", cluster.slug,
        before={str(index): asdict(known[index]) for index in changed if index in known},
        after={str(index): asdict(states[index]) for index in changed},
    )  # fmt: skip
    apply(cluster, actions, change, actor=actor)
    return changed


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
    if merged := queries_aggregated_by(list(removed)):
        text = (
            f"A node that would be removed merges {', '.join(merged)}: let another node merge them"
        )
        raise Conflict("node_merges", text, {"queries": merged})


@retry_when_moved
def set_count(actor: Actor, cluster: Cluster, nodes: int, reason: str = "") -> int:
    """Change the number of nodes from the next micro-batch on; return the number before.

    A new node is active and has the capacity of the slowest one. The row of a removed node stays,
    inactive: samples refer to it. Raises as `check_count` does.
    """
    cluster.refresh_from_db(fields=["routing_version", "slots"])
    check_count(actor, cluster, nodes)
    before = cluster.slots
    there = dict(cluster.nodes.filter(index__lt=nodes).values_list("index", "capacity"))
    if before == nodes == len(there):
        return before
    change = TopologyChange(
        f"{cluster.name} has {nodes} nodes", "cluster.nodes", cluster.slug, reason,
        {"nodes": before}, {"nodes": nodes},
    )  # fmt: skip
    capacity = min(there.values(), default=DEFAULT_CAPACITY)
    apply(cluster, [SetNodeCount(nodes, capacity)], change, actor=actor)
    return before


def state_of(node: Node) -> NodeState:
    """Return what the routing table has of a node."""
    return NodeState(node.capacity, node.emulated, node.active)


def _actions(index: int, before: NodeState, after: NodeState) -> list[Action]:
    actions: list[Action] = []
    if (before.capacity, before.emulated) != (after.capacity, after.emulated):
        actions.append(SetCapacity(index, after.capacity, after.emulated))
    if before.active != after.active:
        actions.append(SetNodeActive(index, after.active))
    return actions


def _summary(name: str, before: NodeState, after: NodeState) -> str:
    parts = []
    if (before.capacity, before.emulated) != (after.capacity, after.emulated):
        limit = ", and is limited to that" if after.emulated else ""
        parts.append(f"has a capacity of {after.capacity:,.0f} deliveries/s{limit}")
    if before.active != after.active:
        parts.append("takes new work" if after.active else "takes no new work")
    return f"{name} {' and '.join(parts)}"
