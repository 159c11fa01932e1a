"""The effects of scenarios on the pipeline, and how their ends revert them.

The replayer reads rush hours and hot keys from the API. Faults of nodes are in Redis
(`wire.node_faults`), added nodes in the routing table.
"""

from functools import partial
from typing import Final

from controlplane.access.roles import Actor, Automatic
from controlplane.connections import redis_client
from controlplane.errors import Conflict
from controlplane.events.after_commit import after_commit
from controlplane.models import Cluster, Node, Scenario
from controlplane.topology import nodes
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.versions import retry_when_moved
from controlplane.wire import node_faults
from controlplane.wire.node_faults import LOST, NodeFault
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import SetNodeActive, SetNodeCount

# The part of its capacity that a slow node processes.
SLOWED: Final = 1 / 3
_US: Final = 1_000_000


def begin_effect(actor: Actor, cluster: Cluster, kind: str) -> int | None:
    """Begin what a scenario does to the topology; return the index of an added node, else None.

    Raises `Forbidden`, `Invalid`.
    """
    if kind != Scenario.Kind.NODE_ADDED:
        return None
    added = nodes.set_count(actor, cluster, cluster.slots + 1, "scenario: node added")
    # The row of a node that was removed earlier is inactive.
    node = cluster.nodes.get(index=added)
    nodes.configure(actor, node, "scenario: node added", active=True)
    return added


def inject(scenario: Scenario) -> None:
    """Store the fault of a scenario about a node; repeated, it changes nothing."""
    fault = fault_of(scenario)
    if fault is not None:
        node_faults.inject(redis_client(), scenario.cluster.slug, fault)


def fault_of(scenario: Scenario) -> NodeFault | None:
    """Return the fault of a scenario, None if it is not about a fault of a node."""
    if scenario.kind not in Scenario.OF_NODES or scenario.node is None:
        return None
    delay = LOST
    if scenario.kind == Scenario.Kind.SLOW_NODE:
        node = scenario.cluster.nodes.get(index=scenario.node)
        delay = max(1, round(_US / (SLOWED * node.capacity)))
    return NodeFault(scenario.node, delay, round(scenario.ends_at.timestamp() * 1000))


def revert(scenario: Scenario) -> str:
    """Revert the effect of a scenario; return what could not be reverted, "" for nothing."""
    if scenario.kind in Scenario.OF_NODES and scenario.node is not None:
        remove = partial(node_faults.remove, redis_client(), scenario.cluster.slug, scenario.node)
        after_commit("remove the fault of a node", remove)
    if scenario.kind == Scenario.Kind.NODE_ADDED and scenario.node is not None:
        return _remove_node(scenario.cluster, scenario.node)
    return ""


@retry_when_moved
def _remove_node(cluster: Cluster, index: int) -> str:
    """Make an added node inactive and remove it, unless it has queries or is not the last one."""
    cluster.refresh_from_db(fields=["routing_version", "slots"])
    node = Node.objects.filter(cluster=cluster, index=index).first()
    if node is None or index >= cluster.slots:
        return ""
    actions: list[Action] = [SetNodeActive(index, active=False)] if node.active else []
    kept = _reason_to_keep(cluster, node)
    if not kept:
        actions.append(SetNodeCount(index, node.capacity))
    if actions:
        summary = f"{node.name} takes no new work" if kept else f"{cluster.name} has {index} nodes"
        change = TopologyChange(f"{summary}: the scenario has ended", author=Automatic("weir").name)
        apply(cluster, actions, change)
    return kept


def _reason_to_keep(cluster: Cluster, node: Node) -> str:
    if node.index != cluster.slots - 1:
        return f"{node.name} stays, inactive: it is not the last node"
    if node.tasks.exists():
        return f"{node.name} stays, inactive: it has queries"
    return ""


def require_node(cluster: Cluster, index: int) -> Node:
    """Return an active node of a cluster. Raises `Conflict` (no_such_node, node_inactive)."""
    node = Node.objects.filter(cluster=cluster, index=index, index__lt=cluster.slots).first()
    if node is None:
        text = f"{cluster.slug} has {cluster.slots} nodes, and no node {index}"
        raise Conflict("no_such_node", text, {"node": index})
    if not node.active:
        text = f"{node.name} is inactive: choose a node that takes work"
        raise Conflict("node_inactive", text, {"node": index})
    return node
