"""The form of a query's retention."""

from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.access.roles import require_operator
from controlplane.catalog import query_retention
from controlplane.catalog.queries import query_by_id
from controlplane.errors import Invalid
from controlplane.models import Cluster
from dashboard.dialog_forms import answer
from dashboard.guards import PageRequest, cluster_page
from dashboard.queries.retention_forms import UNITS, retention_of


@cluster_page
def set_retention(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Change the retention of a query."""
    require_operator(request.actor, cluster)
    query = query_by_id(cluster, pk)

    def change() -> str:
        present = query.retention_s, query.retention_windows
        seconds, windows, faults = retention_of(request.POST.dict(), present)
        if faults:
            raise Invalid(faults)
        reason = request.POST.get("reason", "")
        query_retention.set_retention(request.actor, query, seconds, windows, reason)
        return f"The retention of {query.name} is changed."

    return answer(
        request,
        change,
        page=reverse("query", args=[cluster.slug, pk]),
        form="_retention_form.html",
        context={"cluster": cluster, "query": query, "units": list(UNITS)},
        field="retention_s",
    )


post_retention: Any = require_POST(set_retention)
