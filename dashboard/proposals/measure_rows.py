"""Rows of a proposal's measures: planned, recomputed, measured."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.models import LedgerEntry, Proposal
from controlplane.planning.adapters import measures_of
from controlplane.planning.measures import Better, Measure, Unit
from controlplane.policies.gains import value_text
from controlplane.policies.store import policy_of
from controlplane.topology.applicability import OBSTACLES
from dashboard.numbers import MISSING, milliseconds, percent, ratio, size

# The figures of the ledger: title, unit of charts, and format of cells.
LEDGER = {
    "imbalance": ("Imbalance", "", percent),
    "fullest": ("Load of fullest node", "", percent),
    "replication_factor": ("Replication", "", ratio),
    "bytes": ("State moved", "bytes", size),
    "pause_ms": ("Longest pause", "ms", milliseconds),
    "latency_ms": ("p95 latency", "ms", milliseconds),
}


def measure_rows(
    planner: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    bounds: Mapping[str, float] | None = None,
) -> list[dict[str, str]]:
    """Return the measures of a planner's proposals that have one value for the cluster, as text.

    `note`: unit, better direction, bound.
    """
    return [
        {
            "title": measure.title,
            "before": _text(measure, before.get(measure.name)),
            "after": _text(measure, after.get(measure.name)),
            "note": _note(measure, (bounds or {}).get(measure.name)),
        }
        for measure in measures_of(planner)
        if not measure.per_node
    ]


def _text(measure: Measure, value: float | None) -> str:
    if value is None:
        return MISSING
    # The note has the unit, for lack of space.
    return f"{value:,.0f}" if measure.unit is Unit.RATE else value_text(measure, value)


def _note(measure: Measure, bound: float | None) -> str:
    parts = [str(measure.unit)] if measure.unit is Unit.RATE else []
    if measure.better is not Better.NEITHER:
        parts.append(f"{measure.better} is better")
    if bound is not None:
        parts.append(f"bound {_text(measure, bound)}")
    return "; ".join(parts)


def shown_review(proposal: Proposal) -> dict[str, Any] | None:
    """Return the last review of a waiting proposal, None without one."""
    row = proposal.review
    if not row or proposal.state not in (Proposal.State.READY, Proposal.State.APPROVED):
        return None
    return {
        "at": datetime.fromisoformat(row["at"]),
        "version": row["version"],
        "applicable": row["applicable"],
        "obstacles": [(OBSTACLES[code], count) for code, count in row["obstacles"].items()],
        "measures": measure_rows(proposal.planner, row["before"], row["after"]),
        "gain_lost": row["gain_lost"],
        "tolerated": policy_of(proposal.cluster).tolerated_gain_loss,
    }


def shown_outcome(proposal: Proposal) -> dict[str, Any] | None:
    """Return approved, expected and measured values, None before the ledger entry."""
    entry = LedgerEntry.objects.filter(proposal=proposal).first()
    if entry is None:
        return None
    return {
        "applied": entry.applied,
        "skipped": entry.skipped,
        "samples": entry.samples,
        "measured_at": entry.at,
        "cells": ledger_cells(entry),
    }


def ledger_cells(entry: LedgerEntry) -> list[tuple[str, ...]]:
    """Return title, approved, expected and measured value of each figure."""
    parts = (entry.approved, entry.expected, entry.measured)
    return [
        (title, *(write(values.get(figure)) for values in parts))
        for figure, (title, _, write) in LEDGER.items()
    ]
