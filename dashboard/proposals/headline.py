"""Sentences about proposals, from their typed outcome."""

from collections.abc import Sequence
from typing import Final

from controlplane.numbers import (
    counted,
    lowered,
    percent,
    raised,
    seconds,
    seconds_range,
    value_text,
)
from controlplane.planning.measures import FULLEST, IMBALANCE, Measure
from controlplane.proposals.outcome import MeasureStatus, Outcome
from dashboard.frame.headline import Headline

# Smaller changes of a rate are not worth a clause.
_LEAST: Final = 0.005
_TRAFFIC: Final = "traffic"


def headline_of(outcome: Outcome, rollback_s: float | None, fullest_node: str = "") -> Headline:
    """Return the headline of a plan; `fullest_node`: the name of the fullest node now."""
    clauses = effect_clauses(outcome, fullest_node) or ["no measure changes"]
    # No line begins with a unit.
    what = "; ".join([*clauses, pause_clause(outcome)]).replace(" %", "\N{NO-BREAK SPACE}%")
    return Headline(f"{raised(what)}.", _why(outcome, rollback_s), str(outcome.grade))


def effect_clauses(outcome: Outcome, fullest_node: str = "") -> list[str]:
    """Return what a plan changes, in clauses."""
    return [*_load(outcome, fullest_node), *_traffic(outcome), *_measures(outcome)]


def pause_clause(outcome: Outcome) -> str:
    """Return how many queries pause for how long."""
    if not outcome.queries:
        return "no query pauses"
    of = f" of {outcome.total_queries:,}" if outcome.total_queries else ""
    verb = "pauses" if outcome.queries == 1 and not of else "pause"
    noun = "query" if outcome.queries == 1 and not of else "queries"
    return f"{outcome.queries:,}{of} {noun} {verb} up to {seconds(outcome.pause_ms / 1000)}"


def _load(outcome: Outcome, node: str) -> list[str]:
    row = outcome.of(FULLEST.name)
    if row is None or row.now is None or row.expected is None or row.limit is None:
        return []
    if row.status is MeasureStatus.KEPT:
        return []
    pair = f"{pair_text(row.measure, row.now, row.expected)} of its capacity"
    if row.status is MeasureStatus.RESOLVED:
        return [f"ends the overload of {node or 'the fullest node'}: {pair}"]
    verb = "lowers" if row.expected < row.now else "raises"
    return [f"{verb} the load of the fullest node to {pair}"]


def _measures(outcome: Outcome) -> list[str]:
    clauses = []
    for row in outcome.measures:
        name = row.measure.name
        if name in (FULLEST.name, _TRAFFIC) or row.now is None or row.expected is None:
            continue
        is_main = name in (IMBALANCE.name, outcome.gain.measure)
        if not is_main and row.status in (MeasureStatus.KEPT, MeasureStatus.NO_LIMIT):
            continue
        clauses.append(measure_clause(row.measure, row.now, row.expected, row.limit))
    return clauses


def measure_clause(measure: Measure, before: float, after: float, limit: float | None) -> str:
    """Return a measure without and with a plan, and on which side of its limit it ends."""
    text = f"{lowered(measure.title)} {pair_text(measure, before, after)}"
    if limit is None:
        return text
    side = "within" if after <= limit else "above"
    return f"{text}, {side} the limit of {value_text(limit, measure.unit)}"


def _traffic(outcome: Outcome) -> list[str]:
    row = outcome.of(_TRAFFIC)
    if row is None or not row.now or row.expected is None:
        return []
    change = (row.expected - row.now) / row.now
    if abs(change) < _LEAST:
        return []
    return [f"{percent(abs(change))} {'less' if change < 0 else 'more'} traffic"]


def _why(outcome: Outcome, rollback_s: float | None) -> str:
    parts = []
    if outcome.lock is not None:
        parts.append(f"Approval is locked: {outcome.lock}")
    if outcome.is_safe:
        parts.append("No step is worse than now")
    elif outcome.peak is not None:
        parts.append(f"Some steps are worse than now: imbalance up to {percent(outcome.peak)}")
    if outcome.steps:
        steps = counted(outcome.steps, "steps")
        took = seconds_range(outcome.seconds, outcome.most_seconds)
        parts.append(f"takes {took} by the throttling of its {steps}")
    if rollback_s is not None:
        parts.append(f"rollback takes {seconds(rollback_s)}")
    return f"{'; '.join(parts)}." if parts else ""


def pair_text(measure: Measure, before: float, after: float) -> str:
    """Return two values with one unit: 46 → 9 %."""
    return arrow(value_text(before, measure.unit), value_text(after, measure.unit))


def arrow(first: str, second: str) -> str:
    """Return two texts of values with one unit if it is the same."""
    unit = second.rpartition(" ")[2]
    if unit and first.endswith(f" {unit}") and second.endswith(f" {unit}"):
        first = first.removesuffix(f" {unit}")
    return f"{first} → {second}"


def joined(clauses: Sequence[str]) -> str:
    """Return clauses as one text that begins with a capital."""
    return raised("; ".join(clauses))
