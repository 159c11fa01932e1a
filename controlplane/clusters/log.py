"""The log of a cluster: its URL and the limit of unread bytes."""

from django.db import transaction

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.clusters.changes import clean_fields
from controlplane.errors import Conflict
from controlplane.models import Cluster
from controlplane.wire.log.address import without_password


@transaction.atomic
def set_log(actor: Actor, cluster: Cluster, url: str, limit_mb: int, reason: str = "") -> Cluster:
    """Set the log's URL (empty: the site's Redis) and its limit of unread MiB.

    The URL can change only while the cluster is stopped: windows start again in another log, and
    unread records of the old one stay unread. Raises `Forbidden`, `Invalid`, `Conflict`.
    """
    require_operator(actor, cluster)
    cluster = Cluster.objects.select_for_update().get(pk=cluster.pk)
    before = _log_fields(cluster)
    if url != cluster.log_url and cluster.desired != Cluster.Desired.STOPPED:
        raise Conflict(
            "running", f"Stop {cluster.slug} first: its windows start again in another log"
        )
    cluster.log_url, cluster.log_limit_mb = url.strip(), limit_mb
    clean_fields(cluster, "log_url", "log_limit_mb")
    cluster.save(update_fields=["log_url", "log_limit_mb"])
    # Positions are valid for one log only.
    cluster.drops.update(settles=None)
    audit.record(
        actor,
        "cluster.log",
        cluster.slug,
        cluster=cluster,
        reason=reason,
        before=before,
        after=_log_fields(cluster),
    )
    return cluster


def _log_fields(cluster: Cluster) -> dict[str, str | int]:
    return {"log_url": without_password(cluster.log_url), "log_limit_mb": cluster.log_limit_mb}
