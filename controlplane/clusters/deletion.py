"""Deletion of a stopped cluster with everything that Weir stores of it."""

from functools import partial
from typing import Final

from django.db import transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, require
from controlplane.connections import redis_client
from controlplane.errors import Conflict
from controlplane.events.after_commit import after_commit
from controlplane.models import Cluster, DeletedCluster, Query, RefusedResult
from controlplane.wire.keys import cluster_prefix

# States in which no driver of the cluster runs.
_STOPPED: Final = (Cluster.State.STOPPED, Cluster.State.FAILED)
_KEYS_AT_ONCE: Final = 500


@transaction.atomic
def delete_cluster(actor: Actor, cluster: Cluster, confirm: str, reason: str = "") -> None:
    """Delete a stopped cluster: its rows, and its records and results in Redis.

    `confirm` repeats the slug. Entries of the audit log stay. The slug is free when the agent has
    removed the checkpoints: another cluster would continue from them. Raises `Forbidden`,
    `Conflict` (not_stopped, not_confirmed).
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
    audit.record(actor, "cluster.delete", slug, cluster=cluster, reason=reason, before=before)
    # First what protects nodes, streams and routing versions.
    _delete_queries(cluster)
    for rows in (cluster.executions, cluster.routing_versions):
        rows.all().delete()
    cluster.delete()
    DeletedCluster.objects.create(slug=slug, deleted_at=timezone.now())
    # Again before the agent frees the slug, so nothing stays if Redis is away now.
    after_commit("delete the records", partial(delete_keys, slug))


def _delete_queries(cluster: Cluster) -> None:
    """Delete the queries and all rows of them, by a statement for each table.

    `delete` would load each of 100,000 queries. No model of a query's rows has signals.
    """
    RefusedResult.objects.filter(sink__query__cluster=cluster).delete()
    for relation in Query._meta.related_objects:  # noqa: SLF001 - Django's public name
        of_cluster = {f"{relation.field.name}__cluster": cluster}
        rows = relation.related_model._base_manager.filter(**of_cluster)  # noqa: SLF001 - likewise
        rows._raw_delete(rows.db)  # noqa: SLF001 - what `delete` uses without cascades
    cluster.queries.all()._raw_delete(cluster.queries.db)  # noqa: SLF001 - likewise


def require_unused_slug(slug: str) -> None:
    """Raise `Conflict` for a cluster's slug (cluster_exists) or a deleted one's (slug_used)."""
    if Cluster.objects.filter(slug=slug).exists():
        raise Conflict("cluster_exists", f"There is a cluster {slug}", {"slug": slug})
    if is_being_removed(slug):
        text = (
            f"The agent has not yet removed the checkpoint of the deleted cluster {slug}: "
            "try again in some seconds, or choose another slug"
        )
        raise Conflict("slug_used", text, {"slug": slug})


def is_being_removed(slug: str) -> bool:
    """Return True if the agent has not yet removed the checkpoints of a deleted cluster."""
    return DeletedCluster.objects.filter(slug=slug).exists()


def delete_keys(slug: str) -> None:
    """Delete the keys of a deleted cluster from Redis. Raises `redis.RedisError`."""
    client = redis_client()
    names: list[bytes] = []
    for name in client.scan_iter(match=f"{cluster_prefix(slug)}*", count=_KEYS_AT_ONCE):
        names.append(name)
        if len(names) == _KEYS_AT_ONCE:
            client.unlink(*names)
            names = []
    if names:
        client.unlink(*names)
