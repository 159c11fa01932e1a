"""Locks of approvals: why a ready proposal cannot be approved now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from controlplane.errors import Conflict
from controlplane.formats.json_values import JsonValue
from controlplane.models import Proposal
from controlplane.numbers import percent
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.proposals.drift import would_exceed
from controlplane.proposals.review import Review, is_gain_lost

# On a busy cluster some queries of a plan end between reading and clicking. What is lost by it
# locks the approval by the gain.
_SAME_NUMBER: Final = 0.05


class LockCode(StrEnum):
    """Why a proposal cannot be approved: the codes of the conflict."""

    GAIN_LOST = "gain_lost"
    NOTHING_APPLIES = "nothing_applies"
    CLUSTER_CHANGED = "cluster_changed"
    EXCEEDS = "exceeds"


@dataclass(frozen=True)
class ApprovalLock(JsonValue):
    """A lock of an approval; `gain_lost`, `tolerated`: shares of the gain.

    `raised`: the measures that the plan would raise above their limit. `hold_s`: for how long the
    gain must remain again before the lock is lifted.
    """

    code: LockCode
    applicable: int
    gain_lost: float | None
    tolerated: float
    raised: Sequence[str] = ()
    hold_s: float = 0.0

    def __str__(self) -> str:
        """Return the reason as a clause."""
        if self.code is LockCode.GAIN_LOST and self.gain_lost is not None:
            left = f"{percent(1 - self.gain_lost)} of the gain remains"
            required = f"at least {percent(1 - self.tolerated)} is required"
            if self.gain_lost <= self.tolerated:
                return f"{left} again, but {required} for {self.hold_s:g} s"
            return f"{left}, {required}"
        if self.code is LockCode.NOTHING_APPLIES:
            return "none of the actions can be applied any more"
        if self.code is LockCode.EXCEEDS:
            return would_exceed(self.raised)
        return "nodes or objects of the actions have changed"


def approval_lock(
    review: Review | None, policy: PolicySettings, actions: int
) -> ApprovalLock | None:
    """Return why a proposal cannot be approved, None if it can; `actions`: their number."""
    if review is None:
        return None
    lost, tolerated = review.gain_lost, policy.tolerated_gain_loss
    code, raised = None, review.drift.get("raised") or ()
    if review.drift.get("changed"):
        code = LockCode.CLUSTER_CHANGED
    elif actions and not review.applicable:
        code = LockCode.NOTHING_APPLIES
    elif is_gain_lost(review, policy) or _was_gain_lost(review, policy):
        code = LockCode.GAIN_LOST
    elif raised:
        code = LockCode.EXCEEDS
    if code is None:
        return None
    return ApprovalLock(code, review.applicable, lost, tolerated, raised, policy.alert_hold_s)


def _was_gain_lost(review: Review, policy: PolicySettings) -> bool:
    """Return whether the gain was lost a moment ago: rates near the limit vary from look to look.

    The lock is lifted as alerts end: after their hold time.
    """
    if not review.lost_at:
        return False
    since = datetime.fromisoformat(review.at) - datetime.fromisoformat(review.lost_at)
    return since.total_seconds() < policy.alert_hold_s


def lock_of(proposal: Proposal, policy: PolicySettings | None = None) -> ApprovalLock | None:
    """Return why a proposal that waits for approval cannot be approved, None if it can."""
    if proposal.state != Proposal.State.READY:
        return None
    policy, actions = policy or policy_of(proposal.cluster), proposal.predicted.get("actions", 0)
    return approval_lock(Review.stored(proposal.review), policy, int(actions))


def require_unlocked(
    row: Mapping[str, Any], policy: PolicySettings, actions: int, named: int | None
) -> None:
    """Raise `Conflict` if the review in `row` locks the approval.

    `named`: the number of actions that the approver expects to be applied, None for any. Codes:
    those of `LockCode`, and effect_changed if the number differs by more than a twentieth (data:
    applicable, named).
    """
    review = Review.stored(row)
    lock = approval_lock(review, policy, actions)
    if lock is not None:
        raise Conflict(lock.code, f"It cannot be approved: {lock}", lock.to_json())
    if review is not None and named is not None and _differs(review.applicable, named):
        data = {"applicable": review.applicable, "named": named}
        message = (
            f"{review.applicable} of the actions can be applied now, not {named}: read the effect"
            " again, then approve"
        )
        raise Conflict("effect_changed", message, data)


def _differs(applicable: int, named: int) -> bool:
    return abs(applicable - named) > _SAME_NUMBER * named
