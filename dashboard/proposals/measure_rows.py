"""Rows of the measures of an executed plan: as approved, as expected, and as measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.models import LedgerEntry
from controlplane.numbers import MISSING, compact, milliseconds, percent, ratio, size
from controlplane.planning.adapters import all_measures
from controlplane.planning.measures import FULLEST, IMBALANCE, REPLICATION_FACTOR, TRAFFIC
from controlplane.policies.assessment import Assessment, MeasureEffect
from controlplane.policies.planner_record import error_of

_Write = Callable[[float | None], str]
# The figures of the ledger: title, unit of charts, and format of cells.
LEDGER: Final[Mapping[str, tuple[str, str, _Write]]] = {
    "skew": ("Largest skew of a query", "", percent),
    "split_overload": ("Overload of split nodes", "records/s", compact),
    "imbalance": (IMBALANCE.title, "", percent),
    "fullest": (FULLEST.title, "", percent),
    "replication_factor": (REPLICATION_FACTOR.title, "", ratio),
    "traffic": (TRAFFIC.title, "records/s", compact),
    "bytes": ("State moved", "bytes", size),
    "pause_ms": ("Longest pause", "ms", milliseconds),
    "latency_ms": ("Latency p95", "ms", milliseconds),
    "dropped": ("Input dropped", "", percent),
}


@dataclass(frozen=True)
class ProofRow:
    """A figure of an executed plan as text; `effect`: on its measure, None if not assessed."""

    title: str
    before: str
    approved: str
    expected: str
    measured: str
    error: str
    without: str
    without_error: str
    limit: str
    effect: MeasureEffect | None


def proof_rows(
    entry: LedgerEntry, before: Mapping[str, float], *, all_figures: bool = False
) -> list[ProofRow]:
    """Return the figures of an executed plan; `all_figures`: with those that are unknown."""
    assessment = Assessment.from_json(entry.assessment)
    effects = {row.measure: row for row in assessment.effects}
    return [
        _proof_row(figure, entry, before, effects.get(figure))
        for figure in LEDGER
        if all_figures or figure in entry.approved or figure in entry.measured
    ]


def _proof_row(
    figure: str, entry: LedgerEntry, before: Mapping[str, float], effect: MeasureEffect | None
) -> ProofRow:
    title, _, write = LEDGER[figure]
    approved, measured = entry.approved.get(figure), entry.measured.get(figure)
    is_known = approved is not None and measured is not None
    error = error_of(figure, approved, measured) if is_known else None
    half = entry.without_error.get(figure)
    start = before.get(figure) if figure in all_measures() else None
    if figure == "latency_ms":
        start = approved
    return ProofRow(
        title=title,
        before=write(start),
        approved=MISSING if figure == "latency_ms" else write(approved),
        expected=MISSING if figure == "latency_ms" else write(entry.expected.get(figure)),
        measured=write(measured),
        error=MISSING if error is None or figure == "latency_ms" else percent(error),
        without=write(entry.without.get(figure)),
        without_error=f"± {write(half)}" if half is not None else "",
        limit=write(effect.limit) if effect is not None and effect.limit is not None else "",
        effect=effect,
    )
