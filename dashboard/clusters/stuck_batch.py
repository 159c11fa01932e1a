"""Stuck batches: losses of a skip, and its request."""

from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from controlplane.access.roles import ADMIN, require
from controlplane.errors import Away
from controlplane.health import skipped_batches
from controlplane.health.stuck_batches import losses_of, stuck_batch
from controlplane.models import Cluster
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import notify, notify_refusals, refusal_text, render_page


@cluster_page
def detail(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the stuck batch with the losses of skipping it, and skipped batches."""
    require(request.actor, ADMIN, cluster)
    context: dict[str, Any] = {
        "cluster": cluster,
        "stuck": stuck_batch(cluster),
        "skipped": cluster.skipped_batches.all()[:20],
    }
    if context["stuck"] is not None:
        try:
            context["losses"] = losses_of(cluster, context["stuck"].attempt)
        except Away as away:
            context["away"] = refusal_text(away)
    return render_page(request, "stuck_batch.html", context)


@require_POST
@cluster_page
def skip(request: PageRequest, cluster: Cluster) -> HttpResponseRedirect:
    """Skip the batch in the form."""
    values = request.POST
    with notify_refusals(request):
        row = skipped_batches.skip(
            request.actor, cluster, _number(values.get("batch", "")), values.get("reason", "")
        )
        notify(request, f"Batch {row.batch} is skipped: {row.total:,} records are lost.")
    return redirect("stuck-batch", cluster.slug)


def _number(text: str) -> int:
    """Return the number of the batch, -1 if it is invalid, which the service rejects."""
    return int(text) if text.isascii() and text.isdigit() else -1
