"""The effects of scenarios on the pipeline, and how their ends revert them.

The replayer reads factors of streams and hot keys from the API. Faults of nodes are in Redis
(`wire.node_faults`); capacities, nodes and moved queries are in the routing table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from controlplane.access.roles import Actor, Automatic
from controlplane.clusters.scenarios.disturbed_loads import (
    ALL_STREAMS,
    grown_stream,
    hot_stream,
    overload_factor,
    scattered_from,
    uneven_moves,
)
from controlplane.clusters.scenarios.kinds import KINDS
from controlplane.connections import redis_client
from controlplane.errors import Conflict
from controlplane.events.after_commit import after_commit
from controlplane.models import Cluster, Node, Query, Scenario
from controlplane.topology import nodes
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.versions import retry_when_moved
from controlplane.wire import node_faults
from controlplane.wire.node_faults import LOST, NodeFault
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import (
    SetCapacity,
    SetNodeActive,
    SetNodeCount,
    SetSplitCapacity,
)

# The part of its capacity that a slow node processes.
SLOWED: Final = 1 / 3
# So many times as many records are in a rush hour.
RUSH: Final = 3.0
# The loads of the tasks of a new query are measured after this time.
MEASURED: Final = timedelta(seconds=60)
_US: Final = 1_000_000
_WEIR: Final = Automatic("weir")
Kind = Scenario.Kind


@dataclass(frozen=True)
class PlannedEffect:
    """What a scenario does: actions on the topology, factors of streams, and what was before.

    `node`: the index of the node that it is about.
    """

    node: int | None = None
    actions: Sequence[Action] = ()
    factors: Mapping[str, float] = field(default_factory=dict)
    before: Mapping[str, Any] = field(default_factory=dict)


def planned_effect(cluster: Cluster, kind: str, node: int | None) -> PlannedEffect:
    """Return what a scenario does to rates and topology; reads measures outside of a transaction.

    Raises `Conflict` for a cluster that it cannot disturb.
    """
    planned = _PLANNED.get(kind)
    return PlannedEffect(node) if planned is None else planned(cluster, node)


def _uneven_queries(cluster: Cluster, node: int | None) -> PlannedEffect:
    assert node is not None, "the scenario is about a node"
    plan = uneven_moves(cluster, node)
    return PlannedEffect(node, plan.moves, plan.factors)


def _node_returns(cluster: Cluster, _: int | None) -> PlannedEffect:
    plan = scattered_from(cluster)
    away = [SetNodeActive(index, active=False) for index in plan.nodes]
    before = {"active": list(plan.nodes)}
    return PlannedEffect(None, [*away, *plan.moves], plan.factors, before)


def _hot_key(cluster: Cluster, _: int | None) -> PlannedEffect:
    hot = hot_stream(cluster)
    return PlannedEffect(factors={hot.name: hot.factor})


def _growing_stream(cluster: Cluster, _: int | None) -> PlannedEffect:
    grown = grown_stream(cluster)
    limit = SetSplitCapacity(grown.capacity, emulated=True)
    before = {"split": [cluster.split_capacity, cluster.split_emulated]}
    return PlannedEffect(None, [limit], {grown.name: grown.factor}, before)


def _overload(cluster: Cluster, _: int | None) -> PlannedEffect:
    free = cluster.nodes.filter(index__lt=cluster.slots, emulated=False)
    before = {"emulated": list(free.values_list("index", flat=True))}
    factors = {ALL_STREAMS: overload_factor(cluster)}
    return PlannedEffect(None, _limits(cluster, before, emulated=True), factors, before)


# What scenarios do besides the fault of a node.
_PLANNED: Final[Mapping[str, Callable[[Cluster, int | None], PlannedEffect]]] = {
    Kind.RUSH_HOUR: lambda *_: PlannedEffect(factors={ALL_STREAMS: RUSH}),
    Kind.UNEVEN_QUERIES: _uneven_queries,
    Kind.NODE_RETURNS: _node_returns,
    Kind.HOT_KEY: _hot_key,
    Kind.GROWING_STREAM: _growing_stream,
    Kind.OVERLOAD: _overload,
}


def begin_effect(actor: Actor, scenario: Scenario, actions: Sequence[Action]) -> None:
    """Change the topology for a scenario, in the caller's transaction.

    Raises `Forbidden`, `Invalid`, and `VersionMoved`.
    """
    if scenario.kind == Kind.NODE_ADDED:
        scenario.node = _add_node(actor, scenario.cluster)
        scenario.save(update_fields=["node"])
    _apply(scenario.cluster, actions, KINDS[scenario.kind].title.lower())


def _add_node(actor: Actor, cluster: Cluster) -> int:
    added = nodes.set_count(actor, cluster, cluster.slots + 1, "scenario: node added")
    # The row of a node that was removed earlier is inactive.
    node = cluster.nodes.get(index=added)
    nodes.configure(actor, node, "scenario: node added", active=True)
    return added


def _limits(cluster: Cluster, before: Mapping[str, Any], *, emulated: bool) -> list[Action]:
    limited = cluster.nodes.filter(index__in=before["emulated"])
    return [SetCapacity(node.index, node.capacity, emulated) for node in limited]


def _apply(cluster: Cluster, actions: Sequence[Action], summary: str) -> None:
    if actions:
        change = TopologyChange(f"Scenario on {cluster.name}: {summary}", author=_WEIR.name)
        apply(cluster, actions, change)


@retry_when_moved
def _apply_now(cluster: Cluster, actions: Sequence[Action], summary: str) -> None:
    cluster.refresh_from_db(fields=["routing_version", "slots"])
    _apply(cluster, actions, summary)


def activate_returned(scenario: Scenario, now: datetime) -> bool:
    """Activate the nodes that left once a query of several tasks has run without them.

    For so long that the loads of its tasks are measured.
    """
    if scenario.kind != Kind.NODE_RETURNS or not scenario.before:
        return False
    split = Query.objects.filter(
        cluster=scenario.cluster, task_count__gt=1, placed_at__lt=now - MEASURED
    )
    pending = Query.objects.filter(cluster=scenario.cluster, state=Query.State.PENDING)
    if pending.exists() or not split.filter(state=Query.State.RUNNING).exists():
        return False
    _activate(scenario.cluster, scenario.before["active"])
    scenario.before = {}
    scenario.save(update_fields=["before"])
    return True


def _activate(cluster: Cluster, indices: list[int]) -> None:
    away = cluster.nodes.filter(index__in=indices, active=False)
    actions = [SetNodeActive(node.index, active=True) for node in away]
    _apply_now(cluster, actions, "nodes are back")


def inject(scenario: Scenario) -> None:
    """Store the fault of a scenario about a node; repeated, it changes nothing."""
    fault = fault_of(scenario)
    if fault is not None:
        node_faults.inject(redis_client(), scenario.cluster.slug, fault)


def fault_of(scenario: Scenario) -> NodeFault | None:
    """Return the fault of a scenario, None if it is not about a fault of a node."""
    if scenario.kind not in (Kind.SLOW_NODE, Kind.NODE_LOST) or scenario.node is None:
        return None
    delay = LOST
    if scenario.kind == Kind.SLOW_NODE:
        node = scenario.cluster.nodes.get(index=scenario.node)
        delay = max(1, round(_US / (SLOWED * node.capacity)))
    return NodeFault(scenario.node, delay, round(scenario.ends_at.timestamp() * 1000))


def revert(scenario: Scenario) -> str:
    """Revert the effect of a scenario; return what could not be reverted, "" for nothing."""
    cluster, before = scenario.cluster, scenario.before
    if (fault := fault_of(scenario)) is not None:
        remove = partial(node_faults.remove, redis_client(), cluster.slug, fault.node)
        after_commit("remove the fault of a node", remove)
    if "active" in before:
        _activate(cluster, before["active"])
    if "emulated" in before:
        limits = _limits(cluster, before, emulated=False)
        _apply_now(cluster, limits, "nodes without limits")
    if "split" in before:
        _apply_now(cluster, [SetSplitCapacity(*before["split"])], "split nodes as before")
    if scenario.kind == Kind.NODE_ADDED and scenario.node is not None:
        return _remove_node(cluster, scenario.node)
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
        change = TopologyChange(f"{summary}: the scenario has ended", author=_WEIR.name)
        apply(cluster, actions, change)
    return kept


def _reason_to_keep(cluster: Cluster, node: Node) -> str:
    if node.index != cluster.slots - 1:
        return f"{node.name} stays, inactive: it is not the last node"
    if node.tasks.exists():
        return f"{node.name} stays, inactive: it has queries"
    return ""


def node_of(cluster: Cluster, index: int | None) -> Node:
    """Return an active node of a cluster, the first one with tasks for None.

    Raises `Conflict` (no_such_node, node_inactive).
    """
    present = Node.objects.filter(cluster=cluster, index__lt=cluster.slots)
    if index is None:
        node = present.filter(active=True, tasks__isnull=False).order_by("index").first()
    else:
        node = present.filter(index=index).first()
    if node is None:
        lacks = "no node with queries" if index is None else f"no node {index}"
        text = f"{cluster.slug} has {cluster.slots} nodes, and {lacks}"
        raise Conflict("no_such_node", text, {"node": index})
    if not node.active:
        text = f"{node.name} is inactive: choose a node that takes work"
        raise Conflict("node_inactive", text, {"node": index})
    return node
