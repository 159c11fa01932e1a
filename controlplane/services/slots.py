"""How many nodes a cluster has: its rows follow what its checkpoint has room for."""

from django.db import transaction

from controlplane.errors import Conflict, Invalid
from controlplane.models import Cluster, Node, Task
from controlplane.services import audit
from controlplane.services.access import Actor, require_operator
from controlplane.services.events import announce, event
from controlplane.services.merging import merged_by

# Each node is a process's worth of work; more is a slip of the keyboard.
MAX_SLOTS = 1000
# Records/s of a node, where the cluster has none to go by.
DEFAULT_CAPACITY = 500.0


def check(actor: Actor, cluster: Cluster, slots: int) -> None:
    """Raise unless the cluster is stopped and no node that is to go has, gets or merges tasks.

    Raises `Forbidden`, `Invalid`, `Conflict`.
    """
    require_operator(actor, cluster)
    if not 1 <= slots <= MAX_SLOTS:
        raise Invalid({"slots": [f"Must be from 1 to {MAX_SLOTS}"]})
    stopped = (Cluster.Desired.STOPPED, Cluster.State.STOPPED)
    if (cluster.desired, cluster.state) != stopped:
        raise Conflict("not_stopped", f"{cluster.name} is not stopped: stop it first")
    leaving = Node.objects.filter(cluster=cluster, index__gte=slots)
    active = list(leaving.filter(active=True).values_list("name", flat=True))
    if active:
        text = f"{', '.join(active)} would go: set active off for them, so that they get no queries"
        raise Conflict("node_active", text, {"nodes": active})
    hosts = list(
        leaving.filter(tasks__in=Task.objects.all()).distinct().values_list("name", flat=True)
    )
    if hosts:
        text = f"{', '.join(hosts)} would go and have queries: approve a proposal that moves them"
        raise Conflict("node_hosts", text, {"nodes": hosts})
    if merged := merged_by(list(leaving)):
        text = f"A node that would go merges {', '.join(merged)}: let another node merge them"
        raise Conflict("node_merges", text, {"queries": merged})


@transaction.atomic
def write_down(actor: Actor, cluster: Cluster, slots: int, reason: str = "") -> Cluster:
    """Let the rows follow a checkpoint that has so many slots now.

    A new node gets the capacity of the weakest one there is. A node that has gone stays as a row
    that is not active: samples speak of it. Raises as `check` does.
    """
    check(actor, cluster, slots)
    before = cluster.slots
    there = dict(cluster.nodes.values_list("index", "capacity"))
    capacity = min(there.values(), default=DEFAULT_CAPACITY)
    Node.objects.bulk_create(
        Node(cluster=cluster, index=index, name=f"node {index}", capacity=capacity)
        for index in range(slots)
        if index not in there
    )
    cluster.slots = slots
    cluster.save(update_fields=["slots"])
    audit.record(
        actor,
        "cluster.slots",
        cluster.slug,
        cluster=cluster,
        reason=reason,
        before={"slots": before},
        after={"slots": slots},
    )
    announce(cluster.pk, event("state", f"{cluster.name} has room for {slots} nodes"))
    return cluster
