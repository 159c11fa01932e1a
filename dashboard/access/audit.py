"""The audit log: who changed what, when, from where and why."""

from django.http import HttpResponse

from controlplane.access.audit import AuditFilters, audit_listing
from dashboard.guards import PageRequest, anyone_page
from dashboard.responses import render_list

PER_PAGE = 100


@anyone_page
def index(request: PageRequest) -> HttpResponse:
    """Render a page of audit entries of visible clusters, newest first."""
    values = {"per_page": PER_PAGE} | request.GET.dict()
    filters = AuditFilters.of(values, clusters=request.actor.clusters)
    context = {"filters": filters, "page": audit_listing(filters).page}
    return render_list(request, "audit.html", "_audit_table.html", context)
