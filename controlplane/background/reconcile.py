"""Reconciliation of every cluster every few seconds, so that it recovers after an outage."""

import logging
from datetime import datetime

from controlplane.catalog import query_costs, source_rates, stream_costs
from controlplane.health import stuck_batches
from controlplane.health.losses.repair import is_publication_blocked, request_decision
from controlplane.models import Cluster, Query
from controlplane.planners.shedding import activation, arming
from controlplane.topology import (
    bulk_actions,
    drop_rule_housekeeping,
    placement,
    publishing,
    queries,
)
from controlplane.wire.errors import RoutingTaken

logger = logging.getLogger(__name__)


def reconcile_all(now: datetime) -> None:
    """Reconcile every cluster; an error in one cluster does not affect the others."""
    for cluster in Cluster.objects.all():
        try:
            reconcile_cluster(cluster, now)
        except Exception:
            # The next beat retries.
            logger.exception("Reconciling %s failed", cluster.slug)


def reconcile_cluster(cluster: Cluster, now: datetime) -> None:
    """End overdue queries, place pending ones, publish routing versions, repair Redis.

    And end activations of rungs whose time is over, and arm ladders that are due.
    """
    queries.end_overdue(cluster.pk, now)
    bulk_actions.resume_all(cluster)
    stuck = cluster.queries.filter(state__in=(Query.State.PENDING, Query.State.ENDING))
    if stuck.exists():
        placement.place_pending(cluster.pk)
    if not is_publication_blocked(cluster):
        publish(cluster)
    drop_rule_housekeeping.settle(cluster)
    activation.end_expired(cluster, now)
    arming.arm_due(cluster, now)
    stuck_batches.publish_pending(cluster)


def record_costs(now: datetime) -> None:
    """Store what queries and streams cost; an error in one cluster does not affect the others."""
    for cluster in Cluster.objects.all():
        try:
            query_costs.record_query_costs(cluster, now)
            source_rates.record_source_rates(cluster)
            stream_costs.record_stream_costs(cluster, now)
        except Exception:
            # The next beat retries.
            logger.exception("Recording the costs of %s failed", cluster.slug)


def publish(cluster: Cluster) -> None:
    """Publish unpublished versions, or all versions if Redis has lost them.

    If Redis has a version with other contents, an administrator decides.
    """
    try:
        if not publishing.heal(cluster):
            publishing.publish_unpublished(cluster.pk)
    except RoutingTaken as taken:
        logger.error("%s", taken)
        request_decision(cluster)
