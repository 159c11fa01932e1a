"""Stale proposals: detection of drift, and reviews of waiting proposals."""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.errors import Conflict
from controlplane.models import Proposal
from controlplane.plans.proposal_states import State
from controlplane.policies.store import policy_of
from controlplane.proposals.drift import Drift, observe_drift
from controlplane.proposals.review import Review, is_gain_lost, review
from controlplane.proposals.transitions import WEIR, move_on, notify, unchanged

logger = logging.getLogger(__name__)

# Waiting proposals are reviewed by each task of the beat, every 10 s; less often if a review takes
# more than half a second.
EVERY: Final = timedelta(seconds=8)
TIMES: Final = 20.0


def refuse_if_stale(proposal: Proposal) -> None:
    """Mark a ready proposal that has drifted for long enough as stale, and raise `Conflict`.

    Its data are the drift.
    """
    if proposal.state != Proposal.State.READY:
        return
    if proposal.snapshot_row is not None:
        review(proposal)
    drift = observe_drift(proposal)
    _keep_drift(proposal, drift)
    if drift.stale and mark_stale(proposal, drift):
        message = f"Stale: {drift}. Request it again"
        raise Conflict("stale", message, drift.to_json())


@transaction.atomic
def mark_stale(proposal: Proposal, drift: Drift, by: Actor = WEIR, why: str = "") -> bool:
    """Mark a proposal as stale; return False if its state has changed since it was read.

    `why`: the drift by default.
    """
    why = why or str(drift)
    if not unchanged(proposal):
        return False
    move_on(by, proposal, "mark stale", message=f"stale: {why}", error=why, drift=drift.to_json())
    return True


def review_waiting(now: datetime) -> int:
    """Review the waiting proposals whose review is due; return how many.

    A proposal becomes stale that has lost too much of its gain, would exceed a limit, or no longer
    ends what exceeds one.
    """
    waiting = Proposal.objects.filter(
        state__in=(State.READY, State.APPROVED), snapshot_row__isnull=False
    ).order_by("requested_at")
    reviewed = 0
    # Row by row: plans and snapshots are large, and SQLite cannot write during an open cursor.
    for pk in list(waiting.values_list("pk", flat=True)):
        proposal = waiting.select_related("cluster", "snapshot_row").filter(pk=pk).first()
        if proposal is None or not _is_due(proposal, now):
            continue
        try:
            _review(proposal)
        except Exception:
            # An error in one proposal does not affect the others.
            logger.exception("Review of %s failed", proposal)
            continue
        reviewed += 1
    return reviewed


def review_if_due(proposal: Proposal) -> None:
    """Review a proposal unless its last review is recent."""
    if _is_due(proposal, timezone.now()):
        review(proposal)


def _review(proposal: Proposal) -> None:
    before, fresh = proposal.review, review(proposal)
    policy = policy_of(proposal.cluster)
    drift = observe_drift(proposal, policy=policy)
    _keep_drift(proposal, drift)
    if drift.stale and (is_gain_lost(fresh, policy) or drift.raised or drift.left):
        mark_stale(proposal, drift)
    elif _differs(before, fresh):
        notify(proposal, f"{fresh.applicable} of {len(proposal.actions)} actions apply now")


def _keep_drift(proposal: Proposal, drift: Drift) -> None:
    """Store the drift with the review, so that pages need not compute it."""
    if proposal.review:
        proposal.review = {**proposal.review, "drift": drift.to_json()}
        Proposal.objects.filter(pk=proposal.pk).update(review=proposal.review)


def _is_due(proposal: Proposal, now: datetime) -> bool:
    last = Review.stored(proposal.review)
    if last is None:
        return now - proposal.requested_at >= EVERY
    pause = max(EVERY, timedelta(seconds=TIMES * last.took_s))
    return now - datetime.fromisoformat(last.at) >= pause


def _differs(before: Mapping[str, Any], fresh: Review) -> bool:
    return not before or (before["applicable"], before["gain_lost"]) != (
        fresh.applicable, fresh.gain_lost,
    )  # fmt: skip
