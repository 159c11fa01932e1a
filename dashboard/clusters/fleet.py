"""The fleet page: one row per cluster."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from controlplane.clusters import demo
from controlplane.health.fleet import FleetRow, fleet
from controlplane.health.summary import is_idle
from dashboard import thresholds
from dashboard.clusters.status import cluster_status, fleet_status
from dashboard.guards import PageRequest, anyone_action, anyone_page
from dashboard.responses import notify, render_list

# The order of rows: clusters that need attention first.
_ORDER: Final = (thresholds.BAD, thresholds.WARN, thresholds.GOOD, thresholds.UNKNOWN)


@anyone_page
def overview(request: PageRequest) -> HttpResponse:
    """Render the visible clusters with their measures."""
    now = timezone.now()
    rows = [_grade_row(row, now) for row in fleet(request.actor.clusters)]
    statuses = [(row["cluster"].name, row["status"]) for row in rows]
    context = {
        "rows": sorted(rows, key=lambda row: _ORDER.index(row["status"].grade)),
        "status": fleet_status(statuses),
        "demos": demo.addable() if request.actor.is_operator else [],
    }
    return render_list(request, "fleet.html", "_fleet_body.html", context)


@anyone_action
def post_demo(request: PageRequest, slug: str) -> HttpResponse:
    """Create the cluster of a demo and redirect to its page."""
    cluster = demo.add(request.actor, slug)
    notify(request, f"{cluster.name} is added and starts.")
    return redirect("cluster", cluster.slug)


def _grade_row(row: FleetRow, now: datetime) -> dict[str, Any]:
    """Return a row of the fleet with its status and the levels of its measures."""
    sample, cluster, waited = row.sample or {}, row.cluster, row.oldest_waiting
    # A stopped cluster reports no data.
    is_wanted = cluster.desired == cluster.Desired.RUNNING
    seen = cluster.last_sample_at if is_wanted and not is_idle(cluster, now) else None
    hours = (now - waited) / timedelta(hours=1) if waited else None
    return {
        "row": row,
        "cluster": cluster,
        "sample": sample,
        "status": cluster_status(cluster, sample, now),
        "imbalance": thresholds.IMBALANCE.grade(sample.get("imbalance")),
        "latency": thresholds.latency(cluster.trigger_ms).grade(sample.get("p95")),
        "age": thresholds.AGE_S.grade((now - seen).total_seconds() if seen else None),
        "waiting": thresholds.WAITING_H.grade(hours),
        "line": [values.get("in") for values in row.samples],
    }
