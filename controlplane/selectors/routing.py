"""Routing versions: what a chart annotates, and the whole table at the version decided last."""

from datetime import datetime

from django.db.models import QuerySet

from controlplane.models import Cluster, RoutingVersion


def routing_between(
    cluster: Cluster, start: datetime, end: datetime, limit: int = 200
) -> QuerySet[RoutingVersion]:
    """Return the newest versions decided in the span, without their operations."""
    found = cluster.routing_versions.filter(created_at__gte=start, created_at__lt=end)
    return found.select_related("proposal").defer("ops", "proposal__snapshot")[:limit]
