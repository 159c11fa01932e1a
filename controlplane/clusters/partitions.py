"""Spark partitions of a cluster's checkpoint, and limits of its micro-batches."""

from collections.abc import Mapping

from controlplane.access.roles import Actor, require_operator
from controlplane.clusters.changes import change_fields
from controlplane.errors import Conflict, Invalid
from controlplane.events.publish import announce, event
from controlplane.models import Cluster

MAX_PARTITIONS = 256
# Limits of a micro-batch that operators may change.
LIMITS = ("max_records", "max_batch_mb")


def check(actor: Actor, cluster: Cluster, partitions: int) -> None:
    """Raise unless the cluster is stopped and the number is possible.

    Raises `Forbidden`, `Invalid`, `Conflict`.
    """
    require_operator(actor, cluster)
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise Invalid({"partitions": [f"Must be from 1 to {MAX_PARTITIONS}"]})
    stopped = (Cluster.Desired.STOPPED, Cluster.State.STOPPED)
    if (cluster.desired, cluster.state) != stopped:
        raise Conflict("not_stopped", f"{cluster.name} is not stopped: stop it first")


def record(actor: Actor, cluster: Cluster, partitions: int | None, reason: str = "") -> Cluster:
    """Store the partitions of new checkpoints, None for the number of cores of the master.

    Raises `Forbidden`.
    """
    require_operator(actor, cluster)
    return _change(actor, cluster, "cluster.partitions", {"partitions": partitions}, reason)


def set_batch_limits(
    actor: Actor, cluster: Cluster, limits: Mapping[str, int], reason: str = ""
) -> Cluster:
    """Set limits of a cluster's micro-batches: `max_records`, `max_batch_mb` (MiB), or both.

    A running application is restarted. Raises `Forbidden`, `Invalid`.
    """
    require_operator(actor, cluster)
    unknown = {name: ["Is not a limit of micro-batches"] for name in limits if name not in LIMITS}
    if unknown:
        raise Invalid(unknown)
    return _change(actor, cluster, "cluster.batch_limits", limits, reason)


def _change(
    actor: Actor, cluster: Cluster, action: str, values: Mapping[str, int | None], reason: str
) -> Cluster:
    if change_fields(actor, cluster, action, values, reason):
        text = ", ".join(f"{name} {value}" for name, value in values.items())
        announce(cluster.pk, event("state", f"{cluster.name}: {text}"))
    return cluster
