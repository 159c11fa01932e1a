"""Sentences about executed plans, from the typed assessment over all measures."""

from collections.abc import Sequence

from controlplane.numbers import lowered, percent, raised
from controlplane.policies.assessment import Assessment, Effect, MeasureEffect
from dashboard.proposals.headline import arrow
from dashboard.proposals.measure_rows import LEDGER


def assessment_text(assessment: Assessment) -> str:
    """Return what a plan helped and what it harmed."""
    helped, harmed = assessment.with_effect(Effect.HELPED), assessment.with_effect(Effect.HARMED)
    if not helped and not harmed:
        return "Changed no measure beyond its noise"
    clauses = [f"helped {_joined(helped)}"] if helped else ["helped nothing"]
    clauses.append(f"harmed {_joined(harmed)}" if harmed else "harmed nothing")
    return raised("; ".join(clauses))


def rollback_text(assessment: Assessment) -> str:
    """Return what holds after a rollback."""
    changed = [row for row in assessment.effects if row.effect is not Effect.UNCHANGED]
    if changed:
        return f"against the time before it {_joined(changed)}"
    return "every measure is as before it" if assessment.effects else "not measured"


def effect_text(row: MeasureEffect) -> str:
    """Return a measure with its change, and whether it is above its limit."""
    title, _, write = LEDGER[row.measure]
    text = f"{lowered(title)} {arrow(write(row.before), write(row.measured))}"
    if row.effect is Effect.HARMED and row.change is not None:
        text += f" ({percent(row.change)} more)"
    if row.limit is None or (row.effect is Effect.HELPED and not row.is_exceeded):
        return text
    return f"{text}, {'above' if row.is_exceeded else 'within'} its limit of {write(row.limit)}"


def _joined(rows: Sequence[MeasureEffect]) -> str:
    return ", ".join(map(effect_text, rows))
