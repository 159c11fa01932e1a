"""The desired state of clusters, which the agent reconciles: start, stop, Spark master."""

from django.db import transaction

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.clusters.changes import change_fields
from controlplane.events.publish import announce, event
from controlplane.models import Cluster


def start(actor: Actor, cluster: Cluster, reason: str = "") -> Cluster:
    """Request that the application runs; idempotent. Raises `Forbidden`."""
    return _set_desired(actor, cluster, Cluster.Desired.RUNNING, reason)


def stop(actor: Actor, cluster: Cluster, reason: str = "") -> Cluster:
    """Request that the application stops; a start resumes its queries. Raises `Forbidden`."""
    return _set_desired(actor, cluster, Cluster.Desired.STOPPED, reason)


@transaction.atomic
def _set_desired(actor: Actor, cluster: Cluster, desired: Cluster.Desired, reason: str) -> Cluster:
    require_operator(actor, cluster)
    changed = Cluster.objects.filter(pk=cluster.pk).exclude(desired=desired).update(desired=desired)
    if changed:
        verb = "start" if desired == Cluster.Desired.RUNNING else "stop"
        before = {"desired": cluster.desired}
        audit.record(
            actor,
            f"cluster.{verb}",
            cluster.slug,
            cluster=cluster,
            reason=reason,
            before=before,
            after={"desired": desired},
        )
        announce(cluster.pk, event("state", f"{verb} asked by {actor.name}", state=desired))
    cluster.refresh_from_db()
    return cluster


@transaction.atomic
def set_master(actor: Actor, cluster: Cluster, master: str, reason: str = "") -> Cluster:
    """Set the Spark master of a cluster; a running application is restarted on it.

    Raises `Forbidden`, `Invalid`.
    """
    require_operator(actor, cluster)
    master = master.strip()
    if change_fields(actor, cluster, "cluster.master", {"master": master}, reason):
        announce(cluster.pk, event("state", f"{actor.name} runs it on {master}"))
    return cluster
