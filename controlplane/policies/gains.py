"""Gains of a plan, and measures that it worsens."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from controlplane.models import Proposal
from controlplane.numbers import lowered, value_text
from controlplane.planning.adapters import adapters, all_measures
from controlplane.planning.measures import (
    IMBALANCE,
    REPLICATION_FACTOR,
    SKEW,
    Better,
)
from controlplane.policies.settings import PolicySettings

# Smaller differences are rounding errors.
_SAME: Final = 1e-6


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


@dataclass(frozen=True)
class Worsened:
    """A measure that a plan raises above the limit of a watch loop."""

    measure: str
    after: float
    limit: float

    def __str__(self) -> str:
        """Return it as text."""
        after, limit = (_text(self.measure, value) for value in (self.after, self.limit))
        return f"it raises the {_title(self.measure)} to {after}, above {limit}"


def gain_of(proposal: Proposal, measure: str = "") -> Gain:
    """Return the gain in a measure, by default the largest gain of the planner's measures."""
    return gain_between(proposal.planner, proposal.before, proposal.after, measure)


def gain_between(
    planner: str, before: Mapping[str, Any], after: Mapping[str, Any], measure: str = ""
) -> Gain:
    """Return the gain of a planner's plan with these measures before and after it."""
    adapter = adapters().get(planner)
    names = [measure] if measure else list(adapter.improves) if adapter is not None else []
    gains = [_gain(before, after, name) for name in names or [IMBALANCE.name]]
    return max(gains, key=lambda gain: gain.share)


def worsened(proposal: Proposal, policy: PolicySettings) -> Worsened | None:
    """Return the measure that a plan raises above the limit of a watch loop, None without one."""
    for measure, limit in measure_limits(policy, proposal.bounds).items():
        gain = _gain(proposal.before, proposal.after, measure)
        if gain.after > limit and gain.after > gain.before + _SAME:
            return Worsened(measure, gain.after, limit)
    return None


def measure_limits(policy: PolicySettings, bounds: Mapping[str, float]) -> dict[str, float]:
    """Return the limits of the watch loops by measure; `bounds`: lower bounds by measure."""
    limits = {IMBALANCE.name: policy.watch_imbalance, SKEW: policy.watch_skew}
    if bound := bounds.get(REPLICATION_FACTOR.name):
        limits[REPLICATION_FACTOR.name] = policy.watch_replication * bound
    return limits


def _gain(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> Gain:
    was, becomes = float(before.get(name) or 0.0), float(after.get(name) or 0.0)
    measure = all_measures().get(name)
    change = becomes - was if measure and measure.better == Better.HIGHER else was - becomes
    return Gain(name, change / abs(was) if abs(was) > _SAME else 0.0, was, becomes)


def _title(name: str) -> str:
    measure = all_measures().get(name)
    return lowered(measure.title if measure is not None else name)


def _text(name: str, value: float) -> str:
    measure = all_measures().get(name)
    return value_text(value, measure.unit) if measure is not None else f"{value:.3g}"
