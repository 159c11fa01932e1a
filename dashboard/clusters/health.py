"""Decisions about incidents of a cluster."""

from django.http import HttpResponseRedirect
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from controlplane.health.losses.decisions import decide as carry_out
from controlplane.health.summary import incident_by_id
from controlplane.models import Cluster
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import notify, notify_refusals


@require_POST
@cluster_page
def decide(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponseRedirect:
    """Apply one of an incident's choices."""
    values = request.POST
    incident = incident_by_id(cluster, pk)
    with notify_refusals(request):
        carry_out(request.actor, incident, values.get("choice", ""), values.get("reason", ""))
        notify(request, f"Incident {pk} is decided.")
    return redirect("cluster", cluster.slug)
