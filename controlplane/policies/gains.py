"""What a plan brings, and what it spoils, by the measures before and after it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from controlplane.models import Proposal
from controlplane.policies.settings import PolicySettings

IMBALANCE: Final = "imbalance"
REPLICATION: Final = "replication_factor"
NAMES: Final[Mapping[str, str]] = {IMBALANCE: "imbalance", REPLICATION: "replication factor"}
# Measures that differ by less are the same.
_SAME: Final = 1e-6


@dataclass(frozen=True)
class Gain:
    """By which share of what it was a plan lowers a measure; negative where it raises it."""

    measure: str
    share: float
    before: float
    after: float

    def __str__(self) -> str:
        """Return it as people read it."""
        sizes = {IMBALANCE: "{:.0%}", REPLICATION: "{:.2f}"}[self.measure]
        told = f"{sizes.format(self.before)} to {sizes.format(self.after)}"
        return f"{NAMES[self.measure]} from {told}"


@dataclass(frozen=True)
class Spoilt:
    """A measure that a plan raises above what the watch loops act on."""

    measure: str
    after: float
    limit: float

    def __str__(self) -> str:
        """Return it as people read it."""
        sizes = {IMBALANCE: "{:.0%}", REPLICATION: "{:.2f}"}[self.measure]
        told = f"to {sizes.format(self.after)}, above {sizes.format(self.limit)}"
        return f"it raises the {NAMES[self.measure]} {told}"


def gain_of(proposal: Proposal, measure: str = "") -> Gain:
    """Return the gain in a measure, or the larger one where none is named."""
    if measure:
        return _gain(proposal.before, proposal.after, measure)
    found = [_gain(proposal.before, proposal.after, one) for one in NAMES]
    return max(found, key=lambda gain: gain.share)


def worsened(proposal: Proposal, policy: PolicySettings) -> Spoilt | None:
    """Return what a plan raises above the bound of a watch loop, which would undo it next."""
    limits = {IMBALANCE: policy.watch_imbalance}
    if proposal.lower_bound:
        limits[REPLICATION] = policy.watch_replication * proposal.lower_bound
    for measure, limit in limits.items():
        gain = _gain(proposal.before, proposal.after, measure)
        if gain.after > limit and gain.after > gain.before + _SAME:
            return Spoilt(measure, gain.after, limit)
    return None


def _gain(before: Mapping[str, Any], after: Mapping[str, Any], measure: str) -> Gain:
    was, becomes = float(before.get(measure) or 0.0), float(after.get(measure) or 0.0)
    return Gain(measure, (was - becomes) / was if was > _SAME else 0.0, was, becomes)
