"""Retention of ended queries, old routing versions and expired sessions."""

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.sessions.models import Session

from controlplane.access import failed_attempts
from controlplane.access.logins import login_sessions
from controlplane.access.roles import Automatic
from controlplane.models import BulkAction, Cluster, Query, RoutingVersion
from controlplane.pagination.chunks import delete_in_chunks

# Versions kept per cluster, besides those of executions.
KEPT_VERSIONS = 10_000


def prune_queries(now: datetime) -> int:
    """Delete the queries that ended WEIR_QUERY_RETENTION_HOURS ago; return how many.

    Queries with a longer retention of results are kept as long.
    """
    least = timedelta(hours=settings.QUERY_RETENTION_HOURS)
    over = Query.objects.filter(state__in=(Query.State.ENDED, Query.State.FAILED))
    old = over.filter(ended_at__lt=now - least).order_by()
    deleted = 0
    for seconds in list(old.values_list("retention_s", flat=True).distinct()):
        before = now - max(least, timedelta(seconds=seconds))
        expired = old.filter(retention_s=seconds, ended_at__lt=before)
        deleted += delete_in_chunks(expired.order_by("id"))
    return deleted


def prune_bulk_actions(now: datetime) -> int:
    """Delete bulk actions that finished WEIR_QUERY_RETENTION_HOURS ago; return how many."""
    before = now - timedelta(hours=settings.QUERY_RETENTION_HOURS)
    return BulkAction.objects.filter(finished_at__lt=before).order_by().delete()[0]


def prune_routing() -> int:
    """Delete old published versions, except those of proposals; return how many."""
    deleted = 0
    for cluster in Cluster.objects.all():
        old = RoutingVersion.objects.filter(
            cluster=cluster,
            version__lte=cluster.routing_version - KEPT_VERSIONS,
            proposal=None,
            published_at__isnull=False,
        )
        deleted += old.order_by().delete()[0]
    return deleted


def prune_sessions(now: datetime) -> int:
    """Delete expired sessions, and counts of failed attempts; return how many."""
    deleted = failed_attempts.housekeep(now, Automatic("weir")) + login_sessions.housekeep(now)
    return deleted + Session.objects.filter(expire_date__lt=now).delete()[0]
