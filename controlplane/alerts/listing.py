"""Lists of alerts, single alerts, and the deletion of old ones."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.alerts.measures import KINDS
from controlplane.alerts.states import SUBJECTS, AlertStatus
from controlplane.models import Alert, Cluster
from controlplane.pagination.chunks import delete_in_chunks
from controlplane.pagination.listing import Filters, Listing, choice_filter, text_filter
from controlplane.pagination.lookup import row_by

# Cleared alerts are kept for so long.
KEPT: Final = timedelta(days=90)
# Alerts that have fired; pending ones are internal.
_FIRED: Final = Q(fired_at__isnull=False)
_LOWER: Final = [str(kind.measure) for kind in KINDS.values() if kind.is_lower]
_SHOWN: Final = tuple(str(status) for status in AlertStatus if status is not AlertStatus.PENDING)


@dataclass(frozen=True)
class AlertFilters(Filters):
    """Filters of the list: a cluster's slug, a subject, a state; "" selects all."""

    cluster: str = text_filter("cluster", 40)
    subject: str = choice_filter("subject", lambda: SUBJECTS)
    state: str = choice_filter("state", lambda: _SHOWN)


def alerts_listing(actor: Actor, filters: AlertFilters) -> Listing[Alert, Alert]:
    """Return the alerts of the clusters that the actor may view, newest first."""
    rows = _visible(actor.clusters)
    if filters.cluster:
        rows = rows.filter(cluster__slug=filters.cluster)
    if filters.subject:
        rows = rows.filter(subject=filters.subject)
    if filters.state:
        rows = rows.filter(_condition(AlertStatus(filters.state), timezone.now()))
    return Listing(rows, ("-since", "-pk"), list, filters)


def alert_counts(actor: Actor) -> tuple[dict[str, int], dict[str, int]]:
    """Return how many alerts the actor may view, by state and by subject."""
    rows, now = _visible(actor.clusters).order_by(), timezone.now()
    known = {name: Count("pk", filter=_condition(AlertStatus(name), now)) for name in _SHOWN}
    return rows.aggregate(**known), dict(rows.values_list("subject").annotate(n=Count("pk")))


def _condition(status: AlertStatus, now: datetime) -> Q:
    """Return the condition of rows with a state, as `states.status_of`."""
    if status is AlertStatus.CLEARED:
        return Q(cleared_at__isnull=False)
    silenced = Q(silenced_until__isnull=False, silenced_until__gt=now)
    is_open = Q(cleared_at=None)
    if status is AlertStatus.SILENCED:
        return is_open & silenced
    heard = is_open & (Q(silenced_until=None) | Q(silenced_until__lte=now))
    if status is AlertStatus.ACKNOWLEDGED:
        return heard & Q(acknowledged_at__isnull=False)
    is_lower = Q(subject__in=_LOWER)
    within = (is_lower & Q(value__gte=F("limit"))) | (~is_lower & Q(value__lte=F("limit")))
    return (
        heard & Q(acknowledged_at=None) & (within if status is AlertStatus.RECOVERING else ~within)
    )


def open_alerts(clusters: Collection[int] | None) -> list[Alert]:
    """Return the alerts that have fired and are not cleared, of all or of these clusters."""
    return list(_visible(clusters).filter(cleared_at=None).order_by("since", "pk"))


def alert_by_id(cluster: Cluster, pk: int) -> Alert:
    """Return an alert of a cluster. Raises `NotFound`."""
    return row_by(_visible([cluster.pk]), "alert", pk=pk)


def _visible(clusters: Collection[int] | None) -> QuerySet[Alert]:
    rows = Alert.objects.filter(_FIRED).select_related("cluster")
    return rows if clusters is None else rows.filter(cluster__in=clusters)


def prune(now: datetime) -> int:
    """Delete the alerts that were cleared long ago; return how many."""
    return delete_in_chunks(Alert.objects.filter(cleared_at__lt=now - KEPT))
