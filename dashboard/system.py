"""The page of Weir's own health, and the banner that all pages show."""

from django.http import HttpResponse
from django.utils import timezone

from controlplane.liveness.status import full_status, site_status
from controlplane.models import Cluster
from controlplane.retention.kinds import KINDS, OTHERS
from controlplane.retention.sizes import storage_sizes
from dashboard.guards import PageRequest, anyone_page
from dashboard.responses import render_list, render_page


@anyone_page
def system_health(request: PageRequest) -> HttpResponse:
    """Show every process with its last heartbeat and effect, and the task queues."""
    clusters = Cluster.objects.order_by("slug")
    if request.actor.clusters is not None:
        clusters = clusters.filter(pk__in=request.actor.clusters)
    context = {"status": full_status(clusters), "now": timezone.now()}
    return render_list(request, "system.html", "_system_body.html", context)


@anyone_page
def system_storage(request: PageRequest) -> HttpResponse:
    """Return the sizes of what Weir stores, and what housekeeping keeps."""
    context = {"sizes": storage_sizes(), "kinds": KINDS, "others": OTHERS}
    return render_page(request, "_system_storage.html", context)


@anyone_page
def system_banner(request: PageRequest) -> HttpResponse:
    """Return what all pages show about silent processes."""
    return render_page(request, "_system_banner.html", {"site_status": site_status()})
