"""Pages of the ledger: predictions of executed plans against measurements."""

from collections.abc import Collection, Mapping
from typing import Any

from django.http import HttpResponse, JsonResponse

from algorithms.registry import algorithm_title
from controlplane.models import Cluster, LedgerEntry
from controlplane.numbers import compact, counted, percent
from controlplane.pagination.listing import Filters
from controlplane.planning.adapters import adapters
from controlplane.policies.planner_record import calibration, ledger_listing, record_of
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from dashboard.figures.ledger import ledger_figures
from dashboard.frame.tile import Tile
from dashboard.guards import PageRequest, cluster_page
from dashboard.lists import page_number
from dashboard.proposals.measure_rows import LEDGER, proof_rows
from dashboard.responses import render_list
from dashboard.thresholds import WARN

PER_PAGE = 25
# The number of points that a small chart can show.
DRAWN = 200


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Show records and calibration of the planners, and a page of the ledger."""
    page = ledger_listing(cluster, Filters(page_number(request), PER_PAGE)).page
    policy = policy_of(cluster)
    figures = calibration(cluster)
    # Plans that people composed have no planner that computes them, yet a record.
    planners = dict.fromkeys([*adapters(), *(row.planner for row in figures)])
    records = [_record(cluster, planner, policy) for planner in planners]
    records.sort(key=lambda row: not row["record"].runs)
    calibrated = [
        {
            "one": row,
            "title": algorithm_title(row.planner, row.algorithm),
            "figure": LEDGER[row.figure][0],
        }
        for row in figures
    ]
    known = {name for entry in page.rows for name in (*entry.approved, *entry.measured)}
    titles = {figure: title for figure, (title, *_) in LEDGER.items() if figure in known}
    compared = {row.figure for row in figures}
    context = {
        "page": page,
        "rows": [_row(entry, titles) for entry in page.rows],
        "titles": titles,
        "charted": {name: title for name, title in titles.items() if name in compared},
        "records": records,
        "tiles": [_tile(record) for record in records if record["record"].runs],
        "calibrated": calibrated,
    }
    return render_list(request, "ledger.html", "_ledger_table.html", context)


@cluster_page
def charts(request: PageRequest, cluster: Cluster) -> JsonResponse:
    """Return measured against approved figures, a chart per figure, as JSON."""
    newest = ledger_listing(cluster, Filters(1, DRAWN)).page.rows
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


def _tile(row: Mapping[str, Any]) -> Tile:
    """Return the tile of a planner: the median error of its predictions against the limit."""
    record, error = row["record"], row["record"].median_error
    plans = f"over {counted(record.runs, 'executed plans')}"
    below = "no limit for auto-approval"
    if row["is_used"]:
        below = f"limit {percent(row['limit'])}, from {row['runs']} plans"
    return Tile(
        f"{row['planner'].capitalize()}: median error", row["error"], "",
        plans if record.runs else "no executed plan yet", below,
        error, row["limit"] if row["is_used"] else None,
        grade=WARN if row["is_used"] and not row["is_good"] else "", term="Median error",
    )  # fmt: skip


def _record(cluster: Cluster, planner: str, policy: PolicySettings) -> dict[str, Any]:
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


def _row(entry: LedgerEntry, figures: Collection[str]) -> dict[str, object]:
    return {
        "entry": entry,
        "title": algorithm_title(entry.planner, entry.algorithm),
        "applied": compact(entry.applied),
        "skipped": entry.skipped,
        "cells": proof_rows(entry, {}, figures),
    }
