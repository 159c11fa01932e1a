"""How many nodes a cluster has; nodes can be added and removed while the cluster runs."""

from dataclasses import dataclass

from controlplane.errors import Conflict, Invalid
from controlplane.models import Cluster, Node, Task
from controlplane.services import routing
from controlplane.services.access import Actor, require_operator
from controlplane.services.deciding import Decision, carry_out
from controlplane.services.merging import merged_by
from controlplane.wire.routing import SetNodes

# Each node has a grouping key, a state and a row per micro-batch; more is a slip of the keyboard.
MAX_NODES = 1000
# Records/s of a node, where the cluster has none to go by.
DEFAULT_CAPACITY = 500.0


@dataclass(frozen=True)
class NodeCount:
    """A number of nodes that was asked for: before and after."""

    before: int
    after: int


def check(actor: Actor, cluster: Cluster, nodes: int) -> None:
    """Raise unless no node that is to be removed has, gets or merges tasks.

    Raises `Forbidden`, `Invalid`, `Conflict`.
    """
    require_operator(actor, cluster)
    if not 1 <= nodes <= MAX_NODES:
        raise Invalid({"nodes": [f"Must be from 1 to {MAX_NODES}"]})
    leaving = Node.objects.filter(cluster=cluster, index__gte=nodes)
    active = list(leaving.filter(active=True).values_list("name", flat=True))
    if active:
        text = f"{', '.join(active)} would be removed: set them inactive first"
        raise Conflict("node_active", text, {"nodes": active})
    hosts = list(
        leaving.filter(tasks__in=Task.objects.all()).distinct().values_list("name", flat=True)
    )
    if hosts:
        text = f"{', '.join(hosts)} would be removed with queries: move these by a proposal first"
        raise Conflict("node_hosts", text, {"nodes": hosts})
    if merged := merged_by(list(leaving)):
        text = (
            f"A node that would be removed merges {', '.join(merged)}: let another node merge them"
        )
        raise Conflict("node_merges", text, {"queries": merged})


def set_nodes(actor: Actor, cluster: Cluster, nodes: int, reason: str = "") -> NodeCount:
    """Change the number of nodes; the next micro-batch runs with it, under a routing version.

    A new node gets the capacity of the weakest one there is. A node that was removed stays as a
    row that is not active: samples refer to it. Raises as `check` does.
    """
    return routing.retry_when_moved(lambda: _set_nodes(actor, cluster, nodes, reason))


def _set_nodes(actor: Actor, cluster: Cluster, nodes: int, reason: str) -> NodeCount:
    cluster.refresh_from_db(fields=["routing_version", "slots"])
    check(actor, cluster, nodes)
    count = NodeCount(cluster.slots, nodes)
    _create_missing(cluster, nodes)
    if count.before == count.after:
        return count
    cluster.slots = nodes
    cluster.save(update_fields=["slots"])
    decision = Decision(
        "cluster.nodes",
        cluster.slug,
        f"{cluster.name} has {nodes} nodes",
        reason=reason,
        before={"nodes": count.before},
        after={"nodes": nodes},
    )
    carry_out(actor, cluster, [SetNodes(nodes)], decision)
    return count


def _create_missing(cluster: Cluster, nodes: int) -> None:
    there = dict(cluster.nodes.values_list("index", "capacity"))
    capacity = min(there.values(), default=DEFAULT_CAPACITY)
    Node.objects.bulk_create(
        Node(cluster=cluster, index=index, name=f"node {index}", capacity=capacity)
        for index in range(nodes)
        if index not in there
    )
