"""The ledger: what executed plans had promised against what was measured."""

from django.http import HttpResponse, JsonResponse

from controlplane.models import Cluster, LedgerEntry
from controlplane.pagination.pages import whole
from controlplane.planning.computation import CONNECTED
from controlplane.selectors.ledger import FIGURES, calibration, ledger_page, record_of
from dashboard.figures.ledger import ledger_figures
from dashboard.guards import PageRequest, cluster_page
from dashboard.numbers import compact, milliseconds, percent, ratio, size
from dashboard.plan_names import title_of
from dashboard.responses import render_list

PER_PAGE = 25
# As many points as a small chart shows apart.
DRAWN = 200
TITLES = {
    "imbalance": "Imbalance",
    "replication_factor": "Replication",
    "bytes": "State moved",
    "pause_ms": "Longest pause",
    "latency_ms": "p95 latency",
}
UNITS = {
    "imbalance": "",
    "replication_factor": "",
    "bytes": "bytes",
    "pause_ms": "ms",
    "latency_ms": "ms",
}
_WRITTEN = {
    "imbalance": percent,
    "replication_factor": ratio,
    "bytes": size,
    "pause_ms": milliseconds,
    "latency_ms": milliseconds,
}


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Show records and calibration of the planners, and a page of the ledger."""
    page = ledger_page(cluster, whole(request.GET, "page", 1), PER_PAGE)
    records = {planner: record_of(cluster, planner) for planner in CONNECTED}
    calibrated = [
        {"one": one, "title": title_of(one.planner, one.algorithm), "figure": TITLES[one.figure]}
        for one in calibration(cluster)
    ]
    context = {
        "cluster": cluster,
        "page": page,
        "rows": [_row(entry) for entry in page.rows],
        "titles": TITLES,
        "records": records,
        "calibrated": calibrated,
    }
    return render_list(request, "ledger.html", "_ledger_table.html", context)


@cluster_page
def charts(request: PageRequest, cluster: Cluster) -> JsonResponse:
    """Return measured against predicted, a chart per figure, as JSON."""
    newest = ledger_page(cluster, 1, DRAWN).rows
    entries = [
        (
            title_of(one.planner, one.algorithm),
            f"/clusters/{cluster.slug}/proposals/{one.proposal_id}/",
            one.predicted,
            one.measured,
        )
        for one in newest
        if one.outcome != LedgerEntry.Outcome.ROLLED_BACK
    ]
    return JsonResponse({"figures": ledger_figures(entries, UNITS)})


def _row(entry: LedgerEntry) -> dict[str, object]:
    return {
        "entry": entry,
        "title": title_of(entry.planner, entry.algorithm),
        "moves": compact(entry.moves),
        "cells": [
            (
                TITLES[figure],
                _WRITTEN[figure](entry.predicted.get(figure)),
                _WRITTEN[figure](entry.measured.get(figure)),
            )
            for figure in FIGURES
        ],
    }
