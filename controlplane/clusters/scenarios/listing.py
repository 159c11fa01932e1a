"""Scenarios of a cluster, by time and by id, and the deletion of old ones."""

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q

from controlplane.models import Cluster, Scenario
from controlplane.pagination.chunks import delete_in_chunks
from controlplane.pagination.lookup import row_by

_KEPT: Final = timedelta(days=90)
_MOST: Final = 100


def open_scenarios(cluster: Cluster, now: datetime) -> list[Scenario]:
    """Return the scenarios in effect, oldest first."""
    rows = Scenario.objects.filter(cluster=cluster, ended_at=None, ends_at__gt=now)
    return list(rows.order_by("started_at", "pk"))


def scenarios_between(cluster: Cluster, start: datetime, end: datetime) -> list[Scenario]:
    """Return the scenarios that were in effect in a time range, newest first, at most 100."""
    overlaps = Q(started_at__lt=end) & (Q(ended_at=None) | Q(ended_at__gte=start))
    rows = Scenario.objects.filter(overlaps, cluster=cluster, ends_at__gte=start)
    return list(rows.order_by("-started_at", "-pk")[:_MOST])


def newest_scenarios(cluster: Cluster) -> list[Scenario]:
    """Return the newest scenarios of a cluster, newest first, at most 100."""
    rows = Scenario.objects.filter(cluster=cluster).order_by("-started_at", "-pk")
    return list(rows.select_related("cluster")[:_MOST])


def scenario_by_id(cluster: Cluster, pk: int) -> Scenario:
    """Return a scenario of a cluster. Raises `NotFound`."""
    rows = Scenario.objects.filter(cluster=cluster).select_related("cluster")
    return row_by(rows, "scenario", pk=pk)


def prune(now: datetime) -> int:
    """Delete the scenarios that ended long ago; return how many."""
    return delete_in_chunks(Scenario.objects.filter(ended_at__lt=now - _KEPT))
