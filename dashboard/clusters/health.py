"""Decisions about incidents of a cluster."""

from controlplane.health.losses import decisions
from controlplane.health.summary import incident_by_id
from controlplane.models import Cluster
from dashboard.guards import PageRequest
from dashboard.responses import cluster_change


@cluster_change("cluster")
def decide(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Apply one of an incident's choices."""
    choice, reason = request.POST.get("choice", ""), request.POST.get("reason", "")
    decisions.decide(request.actor, incident_by_id(cluster, pk), choice, reason)
    return f"Incident {pk} is decided."
