"""Pages of the ledger: predictions of executed plans against measurements."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpResponse, JsonResponse

from algorithms.registry import algorithm_title
from controlplane.models import Cluster, LedgerEntry
from controlplane.numbers import MISSING, counted, percent
from controlplane.pagination.listing import Filters
from controlplane.planning.adapters import adapters
from controlplane.planning.sources import planner_title
from controlplane.plans.proposal_states import State
from controlplane.policies.assessment import LATENCY, Assessment, EffectKind
from controlplane.policies.planner_record import calibration, ledger_listing, record_of
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.proposals.listing import ENDED_EARLY
from dashboard.figures.ledger import ledger_figures
from dashboard.frame.tile import Tile
from dashboard.guards import PageRequest, cluster_page
from dashboard.lists import page_number
from dashboard.proposals.headline import arrow
from dashboard.proposals.measure_rows import LEDGER, proof_rows
from dashboard.proposals.page_headline import change_text
from dashboard.responses import render_list
from dashboard.thresholds import WARN

PER_PAGE = 25
# The number of points that a small chart can show.
DRAWN = 200
# With fewer plans that have a figure, the table and the calibration report what a chart could.
_LEAST_DRAWN: Final = 5
# What executed plans cost, as columns of the table.
_COSTS: Final = ("pause_ms", "bytes", LATENCY)


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
            "title": planner_title(row.planner),
            "algorithm": algorithm_title(row.planner, row.algorithm),
            "figure": LEDGER[row.figure][0],
        }
        for row in figures
    ]
    runs: Counter[str] = Counter()
    for row in figures:
        runs[row.figure] += row.runs
    compared = {figure for figure, count in runs.items() if count >= _LEAST_DRAWN}
    context = {
        "page": page,
        "rows": [_row(entry) for entry in page.rows],
        "charted": {name: title for name, (title, *_) in LEDGER.items() if name in compared},
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
            planner_title(entry.planner),
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
        f"{planner_title(row['planner'])}: median error of effects", row["error"], "",
        plans if record.runs else "no executed plan yet", below,
        error, row["limit"] if row["is_used"] else None,
        grade=WARN if row["is_used"] and not row["is_good"] else "", term="Median error",
    )  # fmt: skip


def _record(cluster: Cluster, planner: str, policy: PolicySettings) -> dict[str, Any]:
    """Return the record of a planner, and whether auto-approval follows it."""
    record, limit = record_of(cluster, planner), policy.auto_record_error
    error = record.largest_error
    return {
        "planner": planner,
        "record": record,
        "error": percent(record.median_error),
        "limit": limit,
        "runs": policy.auto_record_runs,
        "is_used": policy.auto_record,
        "is_good": error is None or error <= limit,
    }


def _row(entry: LedgerEntry) -> dict[str, object]:
    """Return an entry with its effects, those that are worse first, and its costs as pairs."""
    rows = {row["name"]: row for row in proof_rows(entry, {})}
    effects = Assessment.from_json(entry.assessment)
    kinds = (EffectKind.HARMED, EffectKind.HELPED)
    changed = [row for kind in kinds for row in effects.with_effect(kind)]
    first = changed[0] if changed else None
    return {
        "entry": entry,
        "state": ENDED_EARLY if entry.outcome == State.STALE else entry.outcome,
        "first": first,
        "change": change_text(first) if first is not None else "",
        "others": "; ".join(f"{row.effect} {change_text(row)}" for row in changed[1:]),
        # No planner predicts a latency, so none is approved.
        "main": rows.get(first.measure) if first and first.measure != LATENCY else None,
        "costs": [(LEDGER[name][0], _pair(rows.get(name))) for name in _COSTS],
    }


def _pair(row: Mapping[str, Any] | None) -> str:
    """Return a figure as approved (a latency: before the plan) and as measured, "" if unknown."""
    if row is None or row["measured"] == MISSING:
        return ""
    start = row["before"] if row["approved"] == MISSING else row["approved"]
    return arrow(start, row["measured"]) if start != MISSING else row["measured"]
