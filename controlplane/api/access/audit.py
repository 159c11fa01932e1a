"""Endpoint of the audit log."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from controlplane.access.audit_log import AuditFilters, audit_listing
from controlplane.api.common.derived import below, columns_of
from controlplane.api.common.lists import listed, requested_page
from controlplane.api.common.schemas import ListOut
from controlplane.api.common.security import caller
from controlplane.models import AuditEntry

router = Router(tags=["audit"])


class AuditOut(
    columns_of(  # type: ignore[misc]
        AuditEntry,
        "id at actor address action object request seal reason",
        before=dict[str, Any],
        after=dict[str, Any],
    )
):
    """One change; request is the id of the request that caused it, seal that of its plan."""

    cluster: str | None = below("cluster.slug")


class AuditPage(ListOut):
    """Some entries of the audit log, the newest first."""

    entries: list[AuditOut]


@router.get("", response=AuditPage)
def list_audit(request: HttpRequest, response: HttpResponse) -> Any:
    """List audit entries, newest first.

    Query parameters q, cluster, action, request (a request's id), cursor, limit (up to 1000). Who
    sees some clusters only gets the entries of those.
    """
    filters = AuditFilters.of(request.GET, clusters=caller(request).clusters)
    page = requested_page(request, audit_listing(filters))
    return listed(request, response, page) | {"entries": page.rows}
