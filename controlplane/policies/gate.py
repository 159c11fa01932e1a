"""The gate of computed plans: a plan without a gain is not offered for approval.

A plan has a gain if it improves a measure of its aims, and raises no measure above its limit, or
further above. A plan that takes tasks off inactive nodes passes at any cost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Self

from controlplane.formats.json_values import JsonValue
from controlplane.models import Proposal
from controlplane.planning.adapters import improved_by
from controlplane.planning.computation import Computed
from controlplane.planning.measures import FULLEST, STRANDED, TRAFFIC
from controlplane.planning.sources import MANUAL
from controlplane.policies.gains import SAME, Gain, gain_in
from controlplane.policies.measure_limits import cluster_limits
from controlplane.policies.settings import PolicySettings

# The aim of a plan that is to end the exceeded limits; any gain of its planner if there are none.
LIMITS: Final = "limits"
# The setting of the policy that limits the imbalance of plans.
IMBALANCE_LIMIT: Final = "watch_imbalance"
# The least gain as a share: pages show a smaller one as none.
LEAST_GAIN: Final = 0.005
# A plan that was to end an exceeded limit may leave this part of what is beyond it.
MOST_LEFT: Final = 0.2


class GateCode(StrEnum):
    """Why a plan is not better than the cluster as it is."""

    EMPTY = "empty"
    EXCLUDED = "excluded"
    NO_GAIN = "no_gain"
    WORSENS = "worsens"
    EXCEEDS = "exceeds"


class NextStep(StrEnum):
    """What helps instead of the plan."""

    NOTHING = "nothing"
    PARAMETER = "parameter"
    CAPACITY = "capacity"
    EXCLUSIONS = "exclusions"
    EXPLAIN = "explain"


@dataclass(frozen=True)
class Change:
    """A measure without and with the plan, and its limit, None without one."""

    measure: str
    before: float | None
    after: float | None
    limit: float | None


@dataclass(frozen=True)
class BetterParameter:
    """The value of a parameter from which a better plan begins, and the measure that it reaches.

    `parameter`: of the planner, or a setting of the policy.
    """

    parameter: str
    value: float
    measure: str
    after: float | None

    @property
    def is_limit(self) -> bool:
        """Return whether it is a limit of the policy."""
        return self.parameter == IMBALANCE_LIMIT


@dataclass(frozen=True)
class Judgement(JsonValue):
    """Why a plan is not offered, and what would help.

    `changes`: what decides, the best reachable value of each aim included; `left_out`: the number
    of actions that exclusions forbid. `better`: None if no other parameter is known to help;
    `missing_capacity`: the records/s that the nodes lack to be within the limit of their load.
    """

    code: GateCode
    changes: tuple[Change, ...]
    next_step: NextStep
    left_out: int = 0
    better: BetterParameter | None = None
    missing_capacity: float | None = None

    def with_better(self, better: BetterParameter) -> "Judgement":
        """Return the judgement with another parameter that helps."""
        return replace(self, better=better, next_step=NextStep.PARAMETER)


@dataclass(frozen=True)
class PlanGate:
    """What plans must keep to be offered.

    `aims`: the measures of which a plan must improve one by more than the share `least`, without
    any those of `planner`; `limits`: of the policy, by measure.
    """

    planner: str
    aims: Sequence[str]
    limits: Mapping[str, float]
    least: float = LEAST_GAIN

    @classmethod
    def of(cls, proposal: Proposal, policy: PolicySettings) -> Self:
        """Return the gate of a request; people answer for the moves that they choose themselves."""
        if proposal.planner == MANUAL:
            return cls(MANUAL, (), {})
        least = LEAST_GAIN
        if proposal.origin == Proposal.Origin.WATCH and proposal.aims:
            least = max(policy.auto_gain, policy.dead_band)
        limits = cluster_limits(proposal.cluster, policy)
        return cls(proposal.planner, tuple(proposal.aims), limits, least)

    def decide(self, plan: Computed) -> Judgement | None:
        """Return why a computed plan is not offered, None if it is."""
        before, after, left_out = plan.before, plan.after, int(plan.predicted["left_out"])
        if not plan.actions:
            code = GateCode.EXCLUDED if left_out else GateCode.EMPTY
            return self._judgement(code, self._aimed(before), plan, left_out)
        if _of(after, STRANDED.name) < _of(before, STRANDED.name):
            return None
        aims = self._aimed(before)
        if aims and (share := self.best_gain(before, after).share) < self.least:
            code = GateCode.WORSENS if share < -SAME else GateCode.NO_GAIN
            return self._judgement(code, aims, plan)
        raised = self.raised(before, after)
        if raised:
            return self._judgement(GateCode.EXCEEDS, raised, plan)
        return None

    def best_gain(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Gain:
        """Return the largest gain of a plan in a measure of its aims, which must have one."""
        gains = (gain_in(before, after, name) for name in self._aimed(before))
        return max(gains, key=lambda gain: gain.share)

    def raised(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
        """Return the measures that a plan raises above their limit, or further above."""
        return [
            name
            for name, limit in self.limits.items()
            if _of(after, name) > limit and _of(after, name) > _of(before, name) + SAME
        ]

    def left(
        self,
        promised: tuple[Mapping[str, Any], Mapping[str, Any]],
        present: tuple[Mapping[str, Any], Mapping[str, Any]],
    ) -> list[str]:
        """Return the measures that a plan was to have within their limit, and now has not.

        `promised`, `present`: values without and with the plan, when it was computed and now.
        """
        (was, promise), (now, after) = promised, present
        return [
            name
            for name, limit in self.limits.items()
            if _of(was, name) > limit >= _of(promise, name) - SAME
            and _of(after, name) - limit > MOST_LEFT * max(_of(now, name) - limit, SAME)
        ]

    def _aimed(self, before: Mapping[str, Any]) -> list[str]:
        """Return the measures of which a plan must improve one, none if its planner has none."""
        own = list(improved_by(self.planner))
        if LIMITS in self.aims:
            return self._exceeded(before) or own
        return list(self.aims) or own

    def _exceeded(self, values: Mapping[str, Any]) -> list[str]:
        return [name for name, limit in self.limits.items() if _of(values, name) > limit]

    def _judgement(
        self, code: GateCode, names: Sequence[str], plan: Computed, left_out: int = 0
    ) -> Judgement:
        before, after = plan.before, plan.after
        changes = tuple(
            Change(name, before.get(name), after.get(name), self.limits.get(name))
            for name in dict.fromkeys((*names, *self._exceeded(before)))
        )
        missing = self._missing_capacity(before)
        if left_out:
            step = NextStep.EXCLUSIONS
        elif missing is not None:
            step = NextStep.CAPACITY
        else:
            step = NextStep.EXPLAIN if self._exceeded(before) else NextStep.NOTHING
        return Judgement(code, changes, step, left_out, None, missing)

    def _missing_capacity(self, before: Mapping[str, Any]) -> float | None:
        """Return the records/s that are missing if the load cannot be spread within its limit."""
        limit, capacity = self.limits.get(FULLEST.name), sum(before.get("capacities") or ())
        missing = _of(before, TRAFFIC.name) / limit - capacity if limit else 0.0
        return round(missing, 3) if missing > SAME else None


def _of(values: Mapping[str, Any], name: str) -> float:
    return float(values.get(name) or 0.0)
