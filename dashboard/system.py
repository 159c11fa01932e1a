"""The page of Weir's own health, and the banner that all pages show."""

from collections.abc import Sequence
from typing import Any, Final

from django.http import HttpResponse
from django.utils import timezone

from controlplane.access.roles import ADMIN
from controlplane.background.retention.kinds import KINDS, OTHERS
from controlplane.background.retention.sizes import Size, storage_sizes
from controlplane.health.liveness.status import full_status, site_status
from controlplane.models import Cluster
from controlplane.wire.network.destinations import words
from dashboard.guards import PageRequest, anyone_page
from dashboard.responses import render_list, render_page

# The largest parts that a place lists.
MOST_SIZES: Final = 12


@anyone_page
def system_health(request: PageRequest) -> HttpResponse:
    """Show every process with its last heartbeat and effect, and the task queues."""
    clusters = Cluster.objects.order_by("slug")
    if request.actor.clusters is not None:
        clusters = clusters.filter(pk__in=request.actor.clusters)
    status = full_status(clusters)
    restarted = [row for row in status.children if row.failures or not row.is_running]
    context = {"status": status, "restarted": restarted, "now": timezone.now()}
    context["destinations"] = words() if request.actor.may(ADMIN) else []
    return render_list(request, "system.html", "_system_body.html", context)


@anyone_page
def system_storage(request: PageRequest) -> HttpResponse:
    """Return the sizes of what Weir stores, and what housekeeping keeps."""
    sizes = storage_sizes()
    places = [
        _place("table", "Database tables", sizes.tables),
        _place("key", "Keys of Redis", sizes.keys),
        _place("folder", "Data directory", sizes.folders),
    ]
    context = {"sizes": sizes, "places": places, "kinds": KINDS, "others": OTHERS}
    return render_page(request, "_system_storage.html", context)


def _place(kind: str, title: str, sizes: Sequence[Size]) -> dict[str, Any]:
    """Return the largest parts of a place where Weir stores data, and the total in bytes."""
    total = sum(size.size or 0 for size in sizes)
    return {"kind": kind, "title": title, "total": total, "rows": sizes[:MOST_SIZES]}


@anyone_page
def system_banner(request: PageRequest) -> HttpResponse:
    """Return what all pages show about silent processes."""
    return render_page(request, "_system_banner.html", {"site_status": site_status()})
