"""Entries of the audit log, written in the transaction of the change, and their lists."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import AuditEntry, Cluster
from controlplane.pagination.listing import Filters, Listing, text_filter


def record(
    actor: Actor,
    action: str,
    subject: str,
    *,
    cluster: Cluster | None = None,
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    seal: str = "",
) -> None:
    """Write one entry; a bulk request gets one entry."""
    AuditEntry.objects.create(
        at=timezone.now(),
        actor=actor.name,
        address=actor.address,
        cluster=cluster,
        action=action,
        object=subject[:200],
        request=actor.request[:40],
        seal=seal,
        reason=reason,
        before=dict(before or {}),
        after=dict(after or {}),
    )


@dataclass(frozen=True)
class AuditFilters(Filters):
    """Filters of the list: cluster is a slug, "" for all; clusters: visible ids, None for all."""

    text: str = text_filter("q")
    cluster: str = text_filter("cluster", 40)
    action: str = text_filter("action", 60)
    request: str = text_filter("request", 40)
    clusters: frozenset[int] | None = None


def audit_listing(filters: AuditFilters) -> Listing[AuditEntry, AuditEntry]:
    """Return the entries, newest first."""
    entries: QuerySet[AuditEntry] = AuditEntry.objects.select_related("cluster")
    if filters.clusters is not None:
        entries = entries.filter(cluster__in=filters.clusters)
    equal = {
        "action": filters.action, "request": filters.request, "cluster__slug": filters.cluster,
    }  # fmt: skip
    entries = entries.filter(**{column: value for column, value in equal.items() if value})
    if filters.text:
        names = ("actor", "action", "object", "reason")
        parts = [(f"{name}__icontains", filters.text) for name in names]
        entries = entries.filter(Q(*parts, _connector=Q.OR))
    return Listing(entries, ("-at", "-pk"), list, filters)
