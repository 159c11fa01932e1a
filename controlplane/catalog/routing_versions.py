"""Routing versions: lists, one version, and the versions in a time range."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from django.db.models import CharField, Count, Min, Q, QuerySet
from django.db.models.functions import Cast, Substr

from controlplane.models import Cluster, RoutingVersion
from controlplane.pagination.listing import Filters, Listing, whole_filter
from controlplane.pagination.lookup import row_by

_TO_MINUTE: Final = len("2026-11-28 05:41")


@dataclass(frozen=True)
class VersionFilters(Filters):
    """Filters of the list: the versions of a proposal's execution."""

    proposal: int | None = whole_filter("proposal")


def versions_listing(
    cluster: Cluster, filters: VersionFilters
) -> Listing[RoutingVersion, RoutingVersion]:
    """Return the versions, newest first, without their operations."""
    routing_versions = RoutingVersion.objects.filter(cluster=cluster).defer("ops")
    if filters.proposal is not None:
        routing_versions = routing_versions.filter(proposal=filters.proposal)
    return Listing(routing_versions, ("-version", "-pk"), list, filters)


def version_by_number(cluster: Cluster, number: int) -> RoutingVersion:
    """Return a version of the cluster's routing table; raises `NotFound`."""
    # A number of more digits than the column holds would be an error of the database.
    return row_by(cluster.routing_versions, "version", version=min(number, 2**63 - 1))


def routing_between(
    cluster: Cluster, start: datetime, end: datetime, limit: int = 200
) -> QuerySet[RoutingVersion]:
    """Return the newest versions in a time range, and all versions of proposals.

    Newest first, without their operations.
    """
    rows = cluster.routing_versions.filter(created_at__gte=start, created_at__lt=end)
    newest = rows.order_by("-version").values_list("version", flat=True)[:limit]
    shown = Q(version__gte=min(newest, default=0)) | Q(proposal__isnull=False)
    return (
        rows.filter(shown)
        .order_by("-version")
        .select_related("proposal")
        .defer("ops", "proposal__actions", "proposal__imbalance_after")
    )


@dataclass(frozen=True)
class AppliedPlan:
    """A proposal whose first routing version took effect at `at`, and the number of versions."""

    proposal: int
    time: datetime
    versions: int


def plans_between(cluster: Cluster, start: datetime, end: datetime) -> list[AppliedPlan]:
    """Return the proposals that took effect in a time range, oldest first."""
    rows = (
        cluster.routing_versions.filter(
            created_at__gte=start, created_at__lt=end, proposal__isnull=False
        )
        .exclude(applied_at=None)
        .order_by()
        .values_list("proposal")
        .annotate(at=Min("applied_at"), versions=Count("id"))
    )
    return sorted((AppliedPlan(*row) for row in rows), key=lambda plan: plan.time)


def placements_between(cluster: Cluster, start: datetime, end: datetime) -> dict[datetime, int]:
    """Return the number of versions without a proposal by minute, of a time range.

    The minutes are read as text: SQLite would call Python for each version to cut its time off.
    """
    rows = (
        cluster.routing_versions.filter(
            created_at__gte=start, created_at__lt=end, proposal__isnull=True
        )
        .order_by()
        .annotate(minute=Substr(Cast("created_at", CharField()), 1, _TO_MINUTE))
        .values_list("minute")
        .annotate(count=Count("id"))
    )
    return {datetime.fromisoformat(minute).replace(tzinfo=UTC): count for minute, count in rows}
