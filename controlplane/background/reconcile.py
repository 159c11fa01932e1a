"""What the beat looks after every few seconds, so that nothing stays stuck after an outage."""

import logging
from datetime import datetime

from controlplane.health import skipped_batches
from controlplane.health.losses.repair import is_publication_blocked, request_decision
from controlplane.models import Cluster, Query
from controlplane.topology import drop_rule_housekeeping, placement, publishing, queries
from controlplane.wire.errors import RoutingTaken

logger = logging.getLogger(__name__)


def reconcile_all(now: datetime) -> None:
    """Tend every cluster; trouble with one does not keep the others waiting."""
    for cluster in Cluster.objects.all():
        try:
            reconcile_cluster(cluster, now)
        except Exception:
            # Whatever it is, the next beat tries again and the log says what it was.
            logger.exception("Tending %s failed", cluster.slug)


def reconcile_cluster(cluster: Cluster, now: datetime) -> None:
    """End what is overdue, place what is stuck, publish what is not, heal a Redis that forgot."""
    queries.end_overdue(cluster.pk, now)
    stuck = cluster.queries.filter(state__in=(Query.State.PENDING, Query.State.ENDING))
    if stuck.exists():
        placement.drain(cluster.pk)
    if not is_publication_blocked(cluster):
        publish(cluster)
    drop_rule_housekeeping.settle(cluster)
    skipped_batches.publish_pending(cluster)


def publish(cluster: Cluster) -> None:
    """Publish what is not published, or all of it to a Redis that has lost it.

    Where Redis has a version with other contents, an administrator has to decide.
    """
    try:
        if not publishing.heal(cluster):
            publishing.publish_unpublished(cluster.pk)
    except RoutingTaken as taken:
        logger.error("%s", taken)
        request_decision(cluster)
