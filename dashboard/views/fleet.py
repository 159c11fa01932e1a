"""The fleet: one row per cluster."""

from datetime import timedelta

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from controlplane.selectors.clusters import FleetRow, fleet
from controlplane.services import demo
from dashboard import grades
from dashboard.guards import PageRequest, anyone_page
from dashboard.shown import show_list, tell


@anyone_page
def overview(request: PageRequest) -> HttpResponse:
    """Show every cluster that one may see with its measures, graded."""
    now = timezone.now()
    rows = [_graded(row, now.timestamp()) for row in fleet(request.actor.clusters)]
    context = {"rows": rows, "demos": demo.addable() if request.actor.is_operator else []}
    return show_list(request, "fleet.html", "_fleet_table.html", context)


@require_POST
@anyone_page
def post_demo(request: PageRequest, slug: str) -> HttpResponse:
    """Add the cluster of a demonstration and open its page."""
    cluster = demo.add(request.actor, slug)
    tell(request, f"{cluster.name} is added and starts.")
    return redirect("cluster", cluster.slug)


def _graded(row: FleetRow, now: float) -> dict[str, object]:
    sample = row.sample or {}
    seen = row.cluster.last_sample_at
    waited = row.oldest_waiting
    return {
        "row": row,
        "sample": sample,
        "imbalance": grades.IMBALANCE.grade(sample.get("imbalance")),
        "latency": grades.latency(row.cluster.trigger_ms).grade(sample.get("p95")),
        "age": grades.AGE_S.grade(now - seen.timestamp() if seen else None),
        "waiting": grades.WAITING_H.grade(_hours(now, waited.timestamp()) if waited else None),
        "line": [one.get("in") for one in row.samples],
    }


def _hours(now: float, then: float) -> float:
    return (now - then) / timedelta(hours=1).total_seconds()
