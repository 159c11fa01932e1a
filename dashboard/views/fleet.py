"""The fleet: one row per cluster."""

from datetime import timedelta

from django.http import HttpResponse
from django.utils import timezone

from controlplane.selectors.clusters import FleetRow, fleet
from dashboard import grades
from dashboard.guards import PageRequest, anyone_page
from dashboard.shown import show_list


@anyone_page
def overview(request: PageRequest) -> HttpResponse:
    """Show every cluster that one may see with its measures, graded."""
    now = timezone.now()
    rows = [_graded(row, now.timestamp()) for row in fleet(request.actor.clusters)]
    return show_list(request, "fleet.html", "_fleet_table.html", {"rows": rows})


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
