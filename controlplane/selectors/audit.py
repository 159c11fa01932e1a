"""The audit log in pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from controlplane.models import AuditEntry
from controlplane.selectors.paging import MAX_PER_PAGE, PER_PAGE, Page, page_of, whole


@dataclass(frozen=True)
class AuditFilters:
    """What the list shows; cluster is a slug, "" is all."""

    text: str = ""
    cluster: str = ""
    page: int = 1
    per_page: int = PER_PAGE

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "AuditFilters":
        """Read q, cluster, page, per_page of a query string."""
        return cls(
            text=str(values.get("q", "")).strip()[:100],
            cluster=str(values.get("cluster", "")).strip()[:40],
            page=whole(values, "page", 1),
            per_page=whole(values, "per_page", PER_PAGE, MAX_PER_PAGE),
        )


def audit_page(filters: AuditFilters) -> Page[AuditEntry]:
    """Return one page, the newest first."""
    found = AuditEntry.objects.select_related("cluster").order_by("-at", "-id")
    if filters.cluster:
        found = found.filter(cluster__slug=filters.cluster)
    if filters.text:
        found = found.filter(
            Q(actor__icontains=filters.text)
            | Q(action__icontains=filters.text)
            | Q(object__icontains=filters.text)
            | Q(reason__icontains=filters.text)
        )
    return page_of(found, filters.page, filters.per_page, list)
