"""The ladder of a cluster as CSV files: its rungs, and what they keep of each query."""

from typing import Final

from django.http import Http404, HttpResponse

from controlplane.models import Cluster
from controlplane.planners.shedding.report import LadderReport, ladder_report
from dashboard.csv_files import csv_file
from dashboard.guards import PageRequest, cluster_page
from dashboard.planners.shedding.status import drop_text

_RUNG_COLUMNS: Final = (
    "rung", "input_factor", "dropped", "input_kept", "quality_lost", "least_query", "least_kept",
    "is_active", "p95_ms",
)  # fmt: skip
_QUERY_COLUMNS: Final = ("query", "weight", "floor")


@cluster_page
def ladder_csv(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return the rungs as a file; parts are from 0 to 1."""
    rows = [
        (
            rung.number,
            round(rung.factor, 6),
            "; ".join(map(drop_text, rung.drops)),
            round(rung.input_kept, 6),
            round(rung.quality_lost, 6),
            rung.least_query,
            round(rung.least_kept, 6),
            int(rung.is_active),
            "" if rung.p95_ms is None else round(rung.p95_ms, 1),
        )
        for rung in _report(cluster).rungs
    ]
    return csv_file(f"{cluster.slug}-ladder.csv", _RUNG_COLUMNS, rows)


@cluster_page
def kept_csv(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return the part of its records that each rung keeps, by query, as a file."""
    report = _report(cluster)
    header = (*_QUERY_COLUMNS, *(f"rung_{rung.number}" for rung in report.rungs))
    rows = [
        (query.name, query.weight, query.floor, *(round(part, 6) for part in query.kept))
        for query in report.queries
    ]
    return csv_file(f"{cluster.slug}-kept-per-query.csv", header, rows)


def _report(cluster: Cluster) -> LadderReport:
    """Return the report on the ladder. Raises `Http404` without one."""
    report = ladder_report(cluster)
    if report.missing:
        raise Http404(f"There is no shedding plan: {report.missing}")
    return report
