"""Deletion of a stopped cluster with everything that Weir stores of it."""

from typing import Final

from django.db import transaction
from redis.exceptions import RedisError

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, require
from controlplane.connections import redis_client
from controlplane.errors import Away, Conflict
from controlplane.models import AuditEntry, Cluster
from controlplane.wire.keys import cluster_prefix

# The action of the audit entry; the entry also reserves the slug.
DELETED: Final = "cluster.delete"
# States in which no driver of the cluster runs.
_STOPPED: Final = (Cluster.State.STOPPED, Cluster.State.FAILED)
_KEYS_AT_ONCE: Final = 500
_AWAY_S: Final = 5


@transaction.atomic
def delete_cluster(actor: Actor, cluster: Cluster, confirm: str, reason: str = "") -> None:
    """Delete a stopped cluster: its rows, and its records and results in Redis.

    `confirm` repeats the slug. Entries of the audit log stay. The checkpoint stays on the disk of
    the agent, so the slug cannot be used again: another cluster would continue from it. Raises
    `Forbidden`, `Conflict` (not_stopped, not_confirmed), and `Away` if Redis does not answer; then
    nothing is deleted.
    """
    require(actor, ADMIN, cluster)
    cluster = Cluster.objects.select_for_update().get(pk=cluster.pk)
    if confirm != cluster.slug:
        text = f"The deletion of {cluster.slug} must repeat its slug"
        raise Conflict("not_confirmed", text, {"slug": cluster.slug})
    if cluster.desired != Cluster.Desired.STOPPED or cluster.state not in _STOPPED:
        text = f"{cluster.slug} is {cluster.state}: stop it first"
        raise Conflict("not_stopped", text, {"desired": cluster.desired, "state": cluster.state})
    before = {
        "name": cluster.name, "nodes": cluster.slots, "streams": cluster.streams.count(),
        "queries": cluster.queries.count(), "routing_version": cluster.routing_version,
    }  # fmt: skip
    slug = cluster.slug
    audit.record(actor, DELETED, slug, cluster=cluster, reason=reason, before=before)
    # First what protects nodes, streams and routing versions.
    for rows in (cluster.drops, cluster.queries, cluster.executions, cluster.routing_versions):
        rows.all().delete()
    cluster.delete()
    # Before the commit: a cluster whose records stay could not be deleted again.
    _delete_keys(slug)


def require_unused_slug(slug: str) -> None:
    """Raise `Conflict` for the slug of a cluster that exists or was deleted."""
    if Cluster.objects.filter(slug=slug).exists():
        raise Conflict("cluster_exists", f"There is a cluster {slug}", {"slug": slug})
    if AuditEntry.objects.filter(action=DELETED, object=slug).exists():
        text = f"{slug} was deleted, and its checkpoint may still exist: choose another slug"
        raise Conflict("slug_used", text, {"slug": slug})


def _delete_keys(slug: str) -> None:
    client = redis_client()
    names: list[bytes] = []
    try:
        for name in client.scan_iter(match=f"{cluster_prefix(slug)}*", count=_KEYS_AT_ONCE):
            names.append(name)
            if len(names) == _KEYS_AT_ONCE:
                client.unlink(*names)
                names = []
        if names:
            client.unlink(*names)
    except RedisError as error:
        text = f"Redis does not answer, so {slug} was not deleted: {error}"
        raise Away("redis_away", text, _AWAY_S) from error
