"""Outcomes of proposals by the policy: measures against limits and bounds, cost, grade.

Pages and texts are derived from these values; nothing reads the actions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from controlplane.models import Proposal
from controlplane.planning.adapters import measures_of
from controlplane.planning.execution_plan import first_cap
from controlplane.planning.measures import FULLEST, REPLICATION_FACTOR, STRANDED, Better, Measure
from controlplane.planning.plan_summary import PlanSummary
from controlplane.policies.gains import SAME, Gain, gain_between
from controlplane.policies.grades import Grade
from controlplane.policies.measure_limits import cluster_limits
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.proposals.approval_lock import ApprovalLock, lock_of
from controlplane.proposals.executions.step_limits import range_s
from controlplane.proposals.review import Review


class MeasureStatus(StrEnum):
    """What a plan does to a measure, by its limit."""

    RESOLVED = "resolved"
    KEPT = "kept"
    REMAINS = "remains"
    WORSENED = "worsened"
    NO_LIMIT = "no_limit"


_GRADES: Final[Mapping[MeasureStatus, Grade]] = {
    MeasureStatus.RESOLVED: Grade.GOOD,
    MeasureStatus.KEPT: Grade.GOOD,
    MeasureStatus.REMAINS: Grade.WARN,
    MeasureStatus.WORSENED: Grade.BAD,
    MeasureStatus.NO_LIMIT: Grade.UNKNOWN,
}


@dataclass(frozen=True)
class MeasureOutcome:
    """A measure now, as proposed, and as it will be if the plan is applied now.

    `now`: without the plan; `expected`: with the actions that still apply, or as proposed if that
    is not computed; `limit`: of the policy; `limit_then`: the limit when the plan was computed,
    None if it has not moved since; `bound`: what no plan can improve on.
    """

    measure: Measure
    now: float | None
    proposed: float | None
    expected: float | None
    limit: float | None
    bound: float | None
    status: MeasureStatus
    limit_then: float | None = None

    @property
    def title(self) -> str:
        """Return the title, with the unit of a rate."""
        unit = self.measure.unit
        return f"{self.measure.title}, {unit}" if unit.endswith("/s") else self.measure.title

    @property
    def is_exceeded(self) -> bool:
        """Return whether the value is above the limit now."""
        return self.now is not None and self.limit is not None and self.now > self.limit

    @property
    def grade(self) -> Grade:
        """Return the level of what the plan does."""
        return _GRADES[self.status]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a plan.

    `gain`: of the measure that the plan improves most; `applicable`: the number of actions that
    still apply, of `actions`; `queries`: the number of queries that pause, of `total_queries`, each
    for at most `pause_ms`; `bytes` of state move in `steps` steps within `seconds`, or within
    `most_seconds` if every step is throttled; `peak`: the largest imbalance during the execution;
    `is_safe`: no step is worse than now; `is_current`: the present effect is known (reviews).
    `grade`: good, warn (a limit stays exceeded, or nothing improves), or bad (a limit is exceeded
    by the plan, or its approval is locked).
    """

    measures: Sequence[MeasureOutcome]
    gain: Gain
    applicable: int
    actions: int
    queries: int
    total_queries: int
    pause_ms: float
    bytes: int
    steps: int
    seconds: float
    most_seconds: float
    peak: float | None
    is_safe: bool
    is_current: bool
    lock: ApprovalLock | None
    grade: Grade

    @property
    def left(self) -> list[MeasureOutcome]:
        """Return the measures that stay or come above their limits."""
        over = (MeasureStatus.REMAINS, MeasureStatus.WORSENED)
        return [row for row in self.measures if row.status in over]

    def of(self, name: str) -> MeasureOutcome | None:
        """Return the outcome of a measure by its name."""
        return next((row for row in self.measures if row.measure.name == name), None)


def outcome_of(
    proposal: Proposal, summary: PlanSummary, policy: PolicySettings | None = None
) -> Outcome:
    """Return the outcome of a proposal with a plan, with its last review while it waits."""
    policy = policy or policy_of(proposal.cluster)
    waits = proposal.state in (Proposal.State.READY, Proposal.State.APPROVED)
    review = Review.stored(proposal.review) if waits else None
    predicted = proposal.predicted
    actions = int(predicted.get("actions", 0))
    lock = lock_of(proposal, policy)
    measures = _measures(proposal, review, policy)
    before, after = (review.before, review.after) if review else (proposal.before, proposal.after)
    gain = gain_between(proposal.planner, before, after)
    seconds, steps = float(predicted.get("seconds", 0.0)), int(predicted.get("steps", 0))
    first = first_cap(policy.cluster_moves)
    return Outcome(
        measures=measures,
        gain=gain,
        applicable=review.applicable if review else actions,
        actions=actions,
        queries=review.queries if review else summary.queries,
        total_queries=summary.total_queries,
        pause_ms=float(predicted.get("pause_ms", 0)),
        bytes=int(predicted.get("bytes", 0)),
        steps=steps,
        seconds=seconds,
        most_seconds=max(seconds, range_s(actions, first, seconds / max(1, steps))[1]),
        peak=summary.peak,
        is_safe=bool(predicted.get("safe", True)),
        is_current=review is not None,
        lock=lock,
        grade=_grade(measures, gain, lock),
    )


def limits_of(proposal: Proposal, policy: PolicySettings) -> dict[str, float]:
    """Return the limits of measures: while it waits those of now, later those of its computation.

    The limit of the replication factor moves with what is reachable.
    """
    then: dict[str, float] = proposal.predicted.get("limits") or {}
    waits = proposal.state in (Proposal.State.READY, Proposal.State.APPROVED)
    return then if then and not waits else cluster_limits(proposal.cluster, policy)


def _measures(
    proposal: Proposal, review: Review | None, policy: PolicySettings
) -> list[MeasureOutcome]:
    limits, bounds = limits_of(proposal, policy), _bounds(proposal)
    return [
        _measure_outcome(measure, proposal, review, limits.get(measure.name), bounds)
        for measure in measures_of(proposal.planner)
        if not measure.per_node and _is_known(measure.name, proposal, review)
    ]


def _is_known(name: str, proposal: Proposal, review: Review | None) -> bool:
    rows = (proposal.before, proposal.after, *((review.after,) if review else ()))
    known = [values[name] for values in rows if values.get(name) is not None]
    # Few clusters have tasks on inactive nodes.
    return any(known) if name == STRANDED.name else bool(known)


def _bounds(proposal: Proposal) -> dict[str, float]:
    """Return the lower bounds by measure; traffic and load follow from the replication factor."""
    bounds: dict[str, float] = dict(proposal.bounds) | {"imbalance": 0.0}
    factor, before = bounds.get(REPLICATION_FACTOR.name), proposal.before
    now = before.get(REPLICATION_FACTOR.name)
    if factor and now and before.get("traffic"):
        # Loads of split queries are not copies, so the bound is that of the rest, at least.
        bounds["traffic"] = before["traffic"] * min(1.0, factor / now)
        capacity = sum(before.get("capacities") or ())
        if capacity:
            bounds[FULLEST.name] = bounds["traffic"] / capacity
    return bounds


def _measure_outcome(
    measure: Measure,
    proposal: Proposal,
    review: Review | None,
    limit: float | None,
    bounds: Mapping[str, float],
) -> MeasureOutcome:
    before: Mapping[str, Any] = review.before if review is not None else proposal.before
    after: Mapping[str, Any] = review.after if review is not None else proposal.after
    now, expected = before.get(measure.name), after.get(measure.name)
    then = (proposal.predicted.get("limits") or {}).get(measure.name)
    return MeasureOutcome(
        measure=measure,
        now=now,
        proposed=proposal.after.get(measure.name),
        expected=expected,
        limit=limit,
        bound=bounds.get(measure.name),
        status=measure_status(now, expected, limit),
        limit_then=None if limit is None or then is None or abs(then - limit) <= SAME else then,
    )


def measure_status(now: float | None, after: float | None, limit: float | None) -> MeasureStatus:
    """Return what a change does to a measure with an upper limit."""
    if limit is None or now is None or after is None:
        return MeasureStatus.NO_LIMIT
    if after <= limit:
        return MeasureStatus.RESOLVED if now > limit else MeasureStatus.KEPT
    is_worse = now <= limit or after > now + SAME
    return MeasureStatus.WORSENED if is_worse else MeasureStatus.REMAINS


def _grade(measures: Sequence[MeasureOutcome], gain: Gain, lock: ApprovalLock | None) -> Grade:
    statuses = {row.status for row in measures}
    if lock is not None or MeasureStatus.WORSENED in statuses:
        return Grade.BAD
    if MeasureStatus.REMAINS in statuses or not _improves(measures, gain):
        return Grade.WARN
    return Grade.GOOD


def _improves(measures: Sequence[MeasureOutcome], gain: Gain) -> bool:
    """Return whether the plan improves any measure that has a better direction."""
    if gain.share > SAME:
        return True
    return any(
        row.now is not None
        and row.expected is not None
        and row.measure.better is not Better.NEITHER
        and (row.now - row.expected) * (1 if row.measure.better is Better.LOWER else -1) > SAME
        for row in measures
    )
