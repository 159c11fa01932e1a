"""Rows of the measures of an executed plan: as approved, as expected, and as measured."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from controlplane.models import LedgerEntry
from controlplane.numbers import MISSING, compact, milliseconds, percent, ratio, size
from controlplane.planning.adapters import all_measures
from controlplane.planning.measures import FULLEST, IMBALANCE, REPLICATION_FACTOR, TRAFFIC
from controlplane.policies.assessment import Assessment, MeasureEffect
from controlplane.policies.planner_record import error_of

_Write = Callable[[float | None], str]


def _rate(value: float | None) -> str:
    return MISSING if value is None else f"{compact(value)} /s"


# The figures of the ledger: title, unit of charts, and format of cells.
LEDGER: Final[Mapping[str, tuple[str, str, _Write]]] = {
    "skew": ("Largest skew of a query", "", percent),
    "split_overload": ("Overload of split nodes", "records/s", _rate),
    "imbalance": (IMBALANCE.title, "", percent),
    "fullest": (FULLEST.title, "", percent),
    "replication_factor": (REPLICATION_FACTOR.title, "", ratio),
    "traffic": (TRAFFIC.title, TRAFFIC.unit, _rate),
    "bytes": ("State moved", "bytes", size),
    "pause_ms": ("Longest pause", "ms", milliseconds),
    "latency_ms": ("Latency p95", "ms", milliseconds),
    "dropped": ("Input dropped", "", percent),
}
# The columns of a proof by the names of their values, in the order of reading.
_COLUMNS: Final[Mapping[str, str]] = {
    "before": "Before", "without": "Without this plan", "measured": "Measured",
    "approved": "Approved", "expected": "Expected for applied", "error": "Error to approved",
    "limit": "Limit",
}  # fmt: skip


def proof_rows(entry: LedgerEntry, before: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the known figures of an executed plan."""
    assessment = Assessment.from_json(entry.assessment)
    effects = {row.measure: row for row in assessment.effects}
    return [
        _proof_row(figure, entry, before, effects.get(figure))
        for figure in LEDGER
        if figure in entry.approved or figure in entry.measured
    ]


def proof_table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns with a value in some row, and the rows with their cells.

    What was expected of the applied actions is shown if it differs from what was approved.
    """
    hidden = {name for name in _COLUMNS if all(row[name] in ("", MISSING) for row in rows)}
    if all(row["expected"] in (MISSING, row["approved"]) for row in rows):
        hidden.add("expected")
    columns = {name: title for name, title in _COLUMNS.items() if name not in hidden}
    return {
        "columns": columns,
        "rows": [
            dict(row) | {"cells": [(name, title, row[name]) for name, title in columns.items()]}
            for row in rows
        ],
    }


def _spread(half: str) -> str:
    """Return the interval of a value as text, "" if it is not known or rounds to nothing."""
    return f" ± {half}" if re.match("[^<]*[1-9]", half) else ""


def _proof_row(
    figure: str, entry: LedgerEntry, before: Mapping[str, float], effect: MeasureEffect | None
) -> dict[str, Any]:
    """Return a figure as text; `effect`: on its measure, None if it is not assessed."""
    title, _, write = LEDGER[figure]
    approved, measured = entry.approved.get(figure), entry.measured.get(figure)
    start = before.get(figure) if figure in all_measures() else None
    error, half = None, entry.without_error.get(figure)
    if approved is not None and measured is not None:
        error = error_of(figure, approved, measured)
    row = {
        "name": figure,
        "title": title,
        "before": write(start),
        "approved": write(approved),
        "expected": write(entry.expected.get(figure)),
        "measured": write(measured),
        "error": percent(error),
        "without": write(entry.without.get(figure)) + _spread(write(half)),
        "limit": write(effect.limit) if effect is not None and effect.limit is not None else "",
        "effect": effect,
    }
    if figure == "latency_ms":
        # No planner predicts it: what was approved is the latency before the execution.
        row |= {"before": write(approved)} | dict.fromkeys(
            ("approved", "expected", "error"), MISSING
        )
    return row
