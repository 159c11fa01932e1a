"""Where a cluster's records are kept, and how much of them may wait to be read."""

from django.core.exceptions import ValidationError
from django.db import transaction

from controlplane.errors import Conflict, Invalid
from controlplane.models import Cluster
from controlplane.services import audit
from controlplane.services.access import Actor, require_operator
from controlplane.wire.log import without_password


@transaction.atomic
def set_log(actor: Actor, cluster: Cluster, url: str, limit_mb: int, reason: str = "") -> Cluster:
    """Keep the records at `url` (empty: the site's Redis), at most `limit_mb` MiB unread.

    Another log begins with windows of its own, and what is unread in the old one stays unread: so
    the URL can only change while the cluster is stopped. Raises `Forbidden`, `Invalid`,
    `Conflict`.
    """
    require_operator(actor, cluster)
    cluster = Cluster.objects.select_for_update().get(pk=cluster.pk)
    before = _told(cluster)
    if url != cluster.log_url and cluster.desired != Cluster.Desired.STOPPED:
        raise Conflict(
            "running", f"Stop {cluster.slug} first: its windows would begin anew in another log"
        )
    cluster.log_url, cluster.log_limit_mb = url.strip(), limit_mb
    try:
        cluster.clean_fields(exclude=_others(cluster))
    except ValidationError as refusal:
        raise Invalid(refusal.message_dict) from refusal
    cluster.save(update_fields=["log_url", "log_limit_mb"])
    # Positions of one log say nothing in another.
    cluster.drops.update(settles=None)
    audit.record(
        actor,
        "cluster.log",
        cluster.slug,
        cluster=cluster,
        reason=reason,
        before=before,
        after=_told(cluster),
    )
    return cluster


def _told(cluster: Cluster) -> dict[str, str | int]:
    return {"log_url": without_password(cluster.log_url), "log_limit_mb": cluster.log_limit_mb}


def _others(cluster: Cluster) -> set[str]:
    names = {field.name for field in cluster._meta.fields}  # noqa: SLF001 - Django's public name
    return names - {"log_url", "log_limit_mb"}
