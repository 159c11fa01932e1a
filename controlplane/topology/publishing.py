"""Publishing routing versions to Redis in their order, and repairing a Redis that lost them.

A version is published after the commit that decided it. What could not be published then is
published by a periodic task within seconds.
"""

import logging
from typing import Final

from django.db.models import Max
from django.utils import timezone

from controlplane.connections import redis_client
from controlplane.models import Cluster, Incident
from controlplane.topology.rows import current_table
from controlplane.topology.versions import delta_of
from controlplane.wire.errors import RoutingGap, RoutingMissing
from controlplane.wire.routing.publication import (
    SNAPSHOT_EVERY,
    latest_version,
    publish,
    publish_snapshot,
    read_table,
    replace_delta,
    unreadable_versions,
)
from controlplane.wire.routing.table import RoutingTable

# States in which the driver may miss a part of an earlier version.
_FAILING: Final = (Cluster.State.FAILED, Cluster.State.CRASH_LOOP, Cluster.State.STUCK)
logger = logging.getLogger(__name__)


def publish_unpublished(cluster_id: int) -> int:
    """Publish the versions that are not yet, in order; returns how many there were.

    A Redis that lost versions in between gets a snapshot of the whole table instead. Nothing is
    published while an administrator has to decide about a loss. Raises `RoutingTaken`.
    """
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None or cluster.incidents.filter(state=Incident.State.UNDECIDED).exists():
        return 0
    waiting = cluster.routing_versions.filter(published_at=None).order_by("version")
    published = 0
    for row in waiting:
        try:
            publish(redis_client(), cluster.slug, delta_of(row))
        except (RoutingGap, RoutingMissing) as lost:
            logger.warning("%s: publishing the whole table of %s", lost, cluster.slug)
            return published + republish(cluster)
        _mark_published(cluster, row.version)
        published += 1
    return published


def republish(cluster: Cluster) -> int:
    """Publish the whole table as a snapshot; returns how many waiting versions it covers.

    The versions that a begun micro-batch may run under are published, too.
    """
    table = current_table(cluster.pk)
    _republish_applied(cluster, table.version)
    publish_snapshot(redis_client(), cluster.slug, table)
    return _mark_published(cluster, table.version)


def _republish_applied(cluster: Cluster, newest: int) -> None:
    """Publish the versions from a little below the newest applied one on.

    Spark runs a micro-batch that was begun under the version that it was planned with, and takes
    the states that tasks exported since an earlier one. It needs these tables to finish. Where
    old versions are pruned, or void, they cannot be computed: then there is the newest table alone.
    """
    applied = Cluster.objects.values_list("applied_version", flat=True).get(pk=cluster.pk)
    low = max(0, applied - SNAPSHOT_EVERY)
    rows = cluster.routing_versions.filter(version__lte=newest).order_by("version")
    if newest <= low or rows.count() != newest:
        return
    table = RoutingTable().apply(*(delta_of(row) for row in rows[:low].iterator()))
    publish_snapshot(redis_client(), cluster.slug, table)
    for row in rows[low:].iterator():
        publish(redis_client(), cluster.slug, delta_of(row))


def heal(cluster: Cluster) -> bool:
    """Republish the table if Redis has lost what was published; return whether it had.

    Versions that no batch has run with are written again if they cannot be read.
    """
    published = cluster.routing_versions.filter(published_at__isnull=False)
    newest = published.aggregate(newest=Max("version"))["newest"]
    if newest is None:
        return False
    latest = latest_version(redis_client(), cluster.slug)
    if latest is not None and latest >= newest:
        _replace_unreadable(cluster, newest)
        return False
    logger.warning("Redis has routing version %s of %s, not %s", latest, cluster.slug, newest)
    republish(cluster)
    return True


def _replace_unreadable(cluster: Cluster, newest: int) -> None:
    """Write published versions again that cannot be read, and a table in place of a broken one."""
    client, slug = redis_client(), cluster.slug
    fails = cluster.state in _FAILING
    first = max(0, newest - SNAPSHOT_EVERY, 0 if fails else cluster.applied_version)
    missing = unreadable_versions(client, slug, range(first + 1, newest + 1))
    for row in cluster.routing_versions.filter(version__in=missing):
        logger.warning("routing version %d of %s is written again", row.version, slug)
        replace_delta(client, slug, delta_of(row))
    if not fails:
        return
    try:
        read_table(client, slug, newest)
    except RoutingMissing as broken:
        logger.warning("%s: publishing the whole table", broken)
        publish_snapshot(client, slug, current_table(cluster.pk))


def _mark_published(cluster: Cluster, version: int) -> int:
    waiting = cluster.routing_versions.filter(version__lte=version, published_at=None)
    return waiting.update(published_at=timezone.now())
