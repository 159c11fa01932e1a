"""Lists of audit entries."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from controlplane.models import AuditEntry
from controlplane.pagination.cursors import Place, Slice, slice_of
from controlplane.pagination.pages import MAX_PER_PAGE, PER_PAGE, Page, page_of, whole


@dataclass(frozen=True)
class AuditFilters:
    """Filters of the list: cluster is a slug, "" for all; clusters: visible ids, None for all."""

    text: str = ""
    cluster: str = ""
    action: str = ""
    request: str = ""
    clusters: frozenset[int] | None = None
    page: int = 1
    per_page: int = PER_PAGE

    @classmethod
    def of(
        cls, values: Mapping[str, Any], clusters: frozenset[int] | None = None
    ) -> "AuditFilters":
        """Read q, cluster, action, request, page, per_page of a query string."""
        return cls(
            action=str(values.get("action", "")).strip()[:60],
            request=str(values.get("request", "")).strip()[:40],
            clusters=clusters,
            text=str(values.get("q", "")).strip()[:100],
            cluster=str(values.get("cluster", "")).strip()[:40],
            page=whole(values, "page", 1),
            per_page=whole(values, "per_page", PER_PAGE, MAX_PER_PAGE),
        )


def audit_page(filters: AuditFilters) -> Page[AuditEntry]:
    """Return a page, newest first."""
    rows = _filtered(filters).order_by("-at", "-id")
    return page_of(rows, filters.page, filters.per_page, list)


def audit_slice(filters: AuditFilters, place: Place) -> Slice[AuditEntry]:
    """Return the entries after a cursor, newest first. Raises `Invalid`."""
    return slice_of(_filtered(filters), ("-at", "-pk"), place, list)


def _filtered(filters: AuditFilters) -> QuerySet[AuditEntry]:
    audit_entries: QuerySet[AuditEntry] = AuditEntry.objects.select_related("cluster")
    if filters.clusters is not None:
        audit_entries = audit_entries.filter(cluster__in=filters.clusters)
    if filters.action:
        audit_entries = audit_entries.filter(action=filters.action)
    if filters.request:
        audit_entries = audit_entries.filter(request=filters.request)
    if filters.cluster:
        audit_entries = audit_entries.filter(cluster__slug=filters.cluster)
    if filters.text:
        audit_entries = audit_entries.filter(
            Q(actor__icontains=filters.text)
            | Q(action__icontains=filters.text)
            | Q(object__icontains=filters.text)
            | Q(reason__icontains=filters.text)
        )
    return audit_entries
