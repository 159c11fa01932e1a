"""Automatic approval: whether the policy approves a ready proposal without a person."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.utils import timezone

from algorithms.registry import algorithm_title
from controlplane.models import Proposal
from controlplane.numbers import lowered, percent, size
from controlplane.planning.adapters import adapters, all_measures, improved_by
from controlplane.planning.sources import planner_title
from controlplane.policies.blackouts import in_blackout
from controlplane.policies.description import days_text
from controlplane.policies.gains import gain_of
from controlplane.policies.gate import PlanGate
from controlplane.policies.planner_record import record_of
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of


@dataclass(frozen=True)
class PolicyDecision:
    """Whether the policy approves a proposal: code, deciding number and its limit.

    `code`: allowed, or the reason of a refusal: not_ready, decided, candidate, asked, kind, day,
    time, blackout, drifting, moves, bytes, gain,
    spoils, record. `text`: a clause for people.
    """

    allowed: bool
    code: str
    number: float | None
    limit: float | None
    text: str


_Check = Callable[[Proposal, PolicySettings, datetime], PolicyDecision | None]


def decide_auto_approval(
    proposal: Proposal, policy: PolicySettings | None = None, moment: datetime | None = None
) -> PolicyDecision:
    """Decide whether the cluster's policy approves a proposal at a moment (now by default)."""
    policy = policy or policy_of(proposal.cluster)
    moment = (moment or timezone.now()).astimezone(UTC)
    for check in _CHECKS:
        refusal = check(proposal, policy, moment)
        if refusal is not None:
            return refusal
    gain = gain_of(proposal)
    text = f"within the policy: {len(proposal.actions)} actions, {size(_bytes(proposal))}"
    if improved_by(proposal.planner):
        return _decision("allowed", f"{text}, {gain}", gain.share, policy.auto_gain)
    return _decision("allowed", text)


def refusals(proposal: Proposal, policy: PolicySettings | None = None) -> list[PolicyDecision]:
    """Return every reason for which the policy does not approve a proposal now, in their order."""
    policy, moment = policy or policy_of(proposal.cluster), timezone.now().astimezone(UTC)
    decisions = (check(proposal, policy, moment) for check in _CHECKS)
    return [decision for decision in decisions if decision is not None]


def _decision(
    code: str, text: str, number: float | None = None, limit: float | None = None
) -> PolicyDecision:
    return PolicyDecision(code == "allowed", code, number, limit, text)


def _life(proposal: Proposal, policy: PolicySettings, moment: datetime) -> PolicyDecision | None:
    if proposal.state != Proposal.State.READY:
        return _decision("not_ready", f"it is {proposal.state}")
    if proposal.decided_by:
        return _decision("decided", f"{proposal.decided_by} decided about it earlier")
    if proposal.comparison_id is not None or proposal.origin == Proposal.Origin.DERIVED:
        return _decision("candidate", "a person chooses one of several alternatives")
    if proposal.origin == Proposal.Origin.PERSON and not policy.auto_asked:
        return _decision("asked", "a person requested it, so a person decides")
    return None


def _kind(proposal: Proposal, policy: PolicySettings, moment: datetime) -> PolicyDecision | None:
    if proposal.planner not in policy.auto_kinds:
        return _decision(
            "kind", f"a person approves plans that {lowered(planner_title(proposal.planner))}"
        )
    adapter = adapters().get(proposal.planner)
    if adapter is not None and proposal.algorithm in adapter.decided_by_people:
        title = algorithm_title(proposal.planner, proposal.algorithm)
        return _decision("kind", f"a person approves plans of the algorithm “{title}”")
    return None


def _when(proposal: Proposal, policy: PolicySettings, moment: datetime) -> PolicyDecision | None:
    begin, end = policy.auto_from, policy.auto_until
    # A window over midnight belongs to the day on which it starts.
    over = begin is not None and end is not None and begin > end
    early = over and end is not None and moment.time() < end
    day = (moment - timedelta(days=1)) if early else moment
    if policy.auto_days and day.weekday() not in policy.auto_days:
        return _decision("day", f"only on {days_text(policy.auto_days)}", day.weekday())
    if begin is None or end is None:
        return None
    inside = (moment.time() >= begin or early) if over else begin <= moment.time() < end
    if inside:
        return None
    now = moment.hour + moment.minute / 60
    return _decision("time", f"only from {begin:%H:%M} to {end:%H:%M} UTC", round(now, 2))


def _blackout(
    proposal: Proposal, policy: PolicySettings, moment: datetime
) -> PolicyDecision | None:
    row = in_blackout(proposal.cluster, moment)
    return None if row is None else _decision("blackout", f"in a blackout: {row.reason}")


def _drifting(
    proposal: Proposal, policy: PolicySettings, moment: datetime
) -> PolicyDecision | None:
    since = proposal.drifting_since
    if since is None:
        return None
    return _decision("drifting", f"the cluster drifts from its snapshot since {since:%H:%M:%S} UTC")


def _size(proposal: Proposal, policy: PolicySettings, moment: datetime) -> PolicyDecision | None:
    moves, sent = int(proposal.predicted.get("moves", 0)), _bytes(proposal)
    if moves > policy.auto_moves:
        text = f"{moves:,} moves, at most {policy.auto_moves:,} are allowed"
        return _decision("moves", text, moves, policy.auto_moves)
    if sent > policy.auto_bytes:
        text = f"{size(sent)} of state, at most {size(policy.auto_bytes)} is allowed"
        return _decision("bytes", text, sent, policy.auto_bytes)
    return None


def _gain(proposal: Proposal, policy: PolicySettings, moment: datetime) -> PolicyDecision | None:
    if not improved_by(proposal.planner):
        return None
    gain = gain_of(proposal)
    if not proposal.actions or gain.share < policy.auto_gain:
        text = f"it gains {percent(gain.share)} ({gain}), {percent(policy.auto_gain)} is required"
        return _decision("gain", text, gain.share, policy.auto_gain)
    gate = PlanGate.of(proposal, policy)
    # The policy may have changed since the plan passed its gate.
    for measure in gate.raised(proposal.before, proposal.after):
        limit, after = gate.limits[measure], proposal.after[measure]
        title = lowered(all_measures()[measure].title)
        return _decision("spoils", f"it raises the {title} above its limit", after, limit)
    return None


def _record(proposal: Proposal, policy: PolicySettings, moment: datetime) -> PolicyDecision | None:
    if not policy.auto_record:
        return None
    record = record_of(proposal.cluster, proposal.planner)
    if record.runs < policy.auto_record_runs:
        text = f"{record.runs} of its plans were executed, {policy.auto_record_runs} are required"
        return _decision("record", text, record.runs, policy.auto_record_runs)
    error, limit = record.largest_error, policy.auto_record_error
    if error is None or error > limit:
        off = "an unknown share" if error is None else percent(error)
        return _decision(
            "record",
            f"its predictions were off by {off}, {percent(limit)} is allowed",
            error,
            limit,
        )
    return None


def _bytes(proposal: Proposal) -> int:
    """Return the bytes of state that its moves transfer, as predicted."""
    return int(proposal.predicted.get("bytes", 0))


_CHECKS: Final[tuple[_Check, ...]] = (
    _life,
    _kind,
    _when,
    _blackout,
    _drifting,
    _size,
    _gain,
    _record,
)
