"""Pages of the ledger: predictions of executed plans against measurements."""

from django.http import HttpResponse, JsonResponse

from algorithms.registry import algorithm_title
from controlplane.models import Cluster, LedgerEntry
from controlplane.planning.adapters import adapters
from controlplane.policies.planner_record import calibration, ledger_page, record_of
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from dashboard.figures.ledger import ledger_figures
from dashboard.guards import PageRequest, cluster_page
from dashboard.lists import page_number
from dashboard.numbers import compact, percent
from dashboard.proposals.measure_rows import LEDGER, proof_rows
from dashboard.responses import render_list

PER_PAGE = 25
# The number of points that a small chart can show.
DRAWN = 200


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Show records and calibration of the planners, and a page of the ledger."""
    page = ledger_page(cluster, page_number(request), PER_PAGE)
    policy = policy_of(cluster)
    records = [_record(cluster, planner, policy) for planner in adapters()]
    calibrated = [
        {
            "one": row,
            "title": algorithm_title(row.planner, row.algorithm),
            "figure": LEDGER[row.figure][0],
        }
        for row in calibration(cluster)
    ]
    context = {
        "page": page,
        "rows": [_row(entry) for entry in page.rows],
        "titles": {figure: title for figure, (title, *_) in LEDGER.items()},
        "records": records,
        "calibrated": calibrated,
    }
    return render_list(request, "ledger.html", "_ledger_table.html", context)


@cluster_page
def charts(request: PageRequest, cluster: Cluster) -> JsonResponse:
    """Return measured against approved figures, a chart per figure, as JSON."""
    newest = ledger_page(cluster, 1, DRAWN).rows
    entries = [
        (
            algorithm_title(entry.planner, entry.algorithm),
            f"/clusters/{cluster.slug}/proposals/{entry.proposal_id}/",
            entry.approved,
            entry.measured,
        )
        for entry in newest
        if entry.outcome != LedgerEntry.Outcome.ROLLED_BACK
    ]
    units = {figure: unit for figure, (_, unit, _) in LEDGER.items()}
    return JsonResponse({"figures": ledger_figures(entries, units)})


def _record(cluster: Cluster, planner: str, policy: PolicySettings) -> dict[str, object]:
    """Return the record of a planner, and whether auto-approval follows it."""
    record, limit = record_of(cluster, planner), policy.auto_record_error
    error = record.median_error
    return {
        "planner": planner,
        "record": record,
        "error": percent(error),
        "limit": limit,
        "runs": policy.auto_record_runs,
        "is_used": policy.auto_record,
        "is_good": error is None or error <= limit,
    }


def _row(entry: LedgerEntry) -> dict[str, object]:
    return {
        "entry": entry,
        "title": algorithm_title(entry.planner, entry.algorithm),
        "applied": compact(entry.applied),
        "skipped": entry.skipped,
        "cells": proof_rows(entry, {}, 0.0, all_figures=True),
    }
