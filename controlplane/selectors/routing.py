"""Routing versions: what a chart annotates, and the whole table at the version decided last."""

from datetime import datetime

from django.db.models import Q, QuerySet

from controlplane.models import Cluster, RoutingVersion


def routing_between(
    cluster: Cluster, start: datetime, end: datetime, limit: int = 200
) -> QuerySet[RoutingVersion]:
    """Return the newest versions decided in the span, and all that carried out a proposal.

    Newest first, without their operations.
    """
    found = cluster.routing_versions.filter(created_at__gte=start, created_at__lt=end)
    newest = found.order_by("-version").values_list("version", flat=True)[:limit]
    shown = Q(version__gte=min(newest, default=0)) | Q(proposal__isnull=False)
    return (
        found.filter(shown)
        .order_by("-version")
        .select_related("proposal")
        .defer("ops", "proposal__moves", "proposal__path")
    )
