"""Decisions about incidents and stuck batches of a cluster, with the losses of a skip."""

from typing import Any

from django.http import HttpResponse

from controlplane.access.roles import ADMIN, require
from controlplane.errors import Away
from controlplane.health import stuck_batches
from controlplane.health.losses import repair
from controlplane.health.stuck_batches import losses_of, stuck_batch
from controlplane.health.summary import incident_by_id
from controlplane.models import Cluster
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import cluster_change, refusal_text, render_page


@cluster_page
def stuck_batch_page(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the stuck batch with the losses of skipping it, and skipped batches."""
    require(request.actor, ADMIN, cluster)
    context: dict[str, Any] = {
        "stuck": stuck_batch(cluster),
        "skipped": cluster.skipped_batches.all()[:20],
    }
    if context["stuck"] is not None:
        try:
            context["losses"] = losses_of(cluster, context["stuck"].attempt)
        except Away as away:
            context["away"] = refusal_text(away)
    return render_page(request, "stuck_batch.html", context)


@cluster_change("stuck-batch")
def skip(request: PageRequest, cluster: Cluster) -> str:
    """Skip the batch in the form."""
    text, reason = request.POST.get("batch", ""), request.POST.get("reason", "")
    # The service rejects -1.
    batch = int(text) if text.isascii() and text.isdigit() else -1
    row = stuck_batches.skip(request.actor, cluster, batch, reason)
    return f"Batch {row.batch} is skipped: {row.total:,} records are lost."


@cluster_change("cluster")
def decide(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Apply one of an incident's choices."""
    choice, reason = request.POST.get("choice", ""), request.POST.get("reason", "")
    repair.decide(request.actor, incident_by_id(cluster, pk), choice, reason)
    return f"Incident {pk} is decided."
