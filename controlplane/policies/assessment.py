"""The assessment on an executed plan: over all measures, those that it harmed too."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final, Self

from controlplane.planning.measures import (
    FULLEST,
    IMBALANCE,
    REPLICATION_FACTOR,
    SKEW,
    SPLIT_OVERLOAD,
    TRAFFIC,
)
from controlplane.policies.gains import SAME
from controlplane.policies.grades import Grade

LATENCY: Final = "latency_ms"
# The part of the records read that is dropped.
DROPPED: Final = "dropped"
# Measures of single planners that are measured after their plans, too.
PLANNED: Final = (SKEW, SPLIT_OVERLOAD, DROPPED)
# The figures of the ledger that are assessed, of which lower ones are better.
ASSESSED: Final = (
    *PLANNED, IMBALANCE.name, FULLEST.name, REPLICATION_FACTOR.name, TRAFFIC.name, LATENCY,
)  # fmt: skip
# Changes within this part of the value are noise, also of a model without errors.
NOISE: Final = 0.05


class EffectKind(StrEnum):
    """What a plan did to a measure."""

    HELPED = "helped"
    UNCHANGED = "unchanged"
    HARMED = "harmed"


@dataclass(frozen=True)
class MeasureEffect:
    """The effect of a plan on a measure; lower values are better.

    `before`: without the plan over the same time if that is known, else before its execution;
    `limit`: of the policy, None without one.
    """

    measure: str
    before: float
    measured: float
    limit: float | None
    effect: EffectKind

    @property
    def change(self) -> float | None:
        """Return the change as a part of the value before, None if that was 0."""
        return self.measured / self.before - 1 if abs(self.before) > SAME else None

    @property
    def grade(self) -> Grade | None:
        """Return the level of the effect, None of no effect."""
        if self.effect is EffectKind.HARMED:
            return Grade.BAD if self.is_exceeded else Grade.WARN
        return Grade.GOOD if self.effect is EffectKind.HELPED else None

    @property
    def is_exceeded(self) -> bool:
        """Return whether the value is above its limit."""
        return self.limit is not None and self.measured > self.limit


@dataclass(frozen=True)
class Assessment:
    """The effects of a plan on all measures that are known."""

    effects: tuple[MeasureEffect, ...]

    @classmethod
    def of(
        cls,
        before: Mapping[str, float],
        measured: Mapping[str, float],
        errors: Mapping[str, float],
        limits: Mapping[str, float],
    ) -> Self:
        """Return the assessment; `errors`: of the values before, as half widths of intervals."""
        return cls(
            tuple(
                MeasureEffect(
                    name, before[name], measured[name], limits.get(name),
                    _effect(before[name], measured[name], errors.get(name, 0.0)),
                )
                for name in ASSESSED
                if name in before and name in measured
            )
        )  # fmt: skip

    def with_effect(self, effect: EffectKind) -> Sequence[MeasureEffect]:
        """Return the measures with this effect, those above their limit first."""
        rows = [row for row in self.effects if row.effect is effect]
        return sorted(rows, key=lambda row: not row.is_exceeded)

    @property
    def grade(self) -> Grade:
        """Return the level: bad if a limit is exceeded by harm.

        Warn with any harm, without help, or where a limit stays exceeded.
        """
        harmed = self.with_effect(EffectKind.HARMED)
        if any(row.is_exceeded for row in harmed):
            return Grade.BAD
        is_solved = bool(self.with_effect(EffectKind.HELPED)) and not harmed
        is_within = not any(row.is_exceeded for row in self.effects)
        return Grade.GOOD if is_solved and is_within else Grade.WARN

    def to_json(self) -> list[dict[str, Any]]:
        """Return the assessment as JSON values."""
        return [asdict(row) for row in self.effects]

    @classmethod
    def from_json(cls, rows: Sequence[Mapping[str, Any]]) -> Self:
        """Return the assessment that `to_json` wrote."""
        effects = (MeasureEffect(**{**row, "effect": EffectKind(row["effect"])}) for row in rows)
        return cls(tuple(effects))


def _effect(before: float, measured: float, error: float) -> EffectKind:
    if abs(measured - before) <= max(error, NOISE * abs(before), SAME):
        return EffectKind.UNCHANGED
    return EffectKind.HELPED if measured < before else EffectKind.HARMED
