"""Gains of a plan in its measures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from controlplane.models import Proposal
from controlplane.numbers import lowered, value_text
from controlplane.planning.adapters import all_measures, improved_by
from controlplane.planning.measures import IMBALANCE, Better

# Smaller differences are rounding errors.
SAME: Final = 1e-6


@dataclass(frozen=True)
class Gain:
    """The share by which a plan improves a measure; negative if it worsens the measure."""

    measure: str
    share: float
    before: float
    after: float

    def __str__(self) -> str:
        """Return it as text."""
        return f"{_title(self.measure)} from {_text(self.measure, self.before)} to " + _text(
            self.measure, self.after
        )


def gain_of(proposal: Proposal, measure: str = "") -> Gain:
    """Return the gain in a measure, by default the largest gain of the planner's measures."""
    return gain_between(proposal.planner, proposal.before, proposal.after, measure)


def gain_between(
    planner: str, before: Mapping[str, Any], after: Mapping[str, Any], measure: str = ""
) -> Gain:
    """Return the gain of a planner's plan with these measures before and after it."""
    names = [measure] if measure else improved_by(planner) or [IMBALANCE.name]
    gains = [gain_in(before, after, name) for name in names]
    return max(gains, key=lambda gain: gain.share)


def gain_in(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> Gain:
    """Return the gain in one measure: 0 if it is not known, 1 or -1 if it was 0 and changes."""
    was, becomes = float(before.get(name) or 0.0), float(after.get(name) or 0.0)
    measure = all_measures().get(name)
    change = becomes - was if measure and measure.better == Better.HIGHER else was - becomes
    whole = abs(was) if abs(was) > SAME else abs(becomes)
    return Gain(name, change / whole if whole > SAME else 0.0, was, becomes)


def _title(name: str) -> str:
    measure = all_measures().get(name)
    return lowered(measure.title if measure is not None else name)


def _text(name: str, value: float) -> str:
    measure = all_measures().get(name)
    return value_text(value, measure.unit) if measure is not None else f"{value:.3g}"
