"""The effect of a proposal that waits, recomputed for the actions that can still be applied."""

import logging
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from controlplane.models import Proposal
from controlplane.planning.adapters import adapters
from controlplane.planning.measures import measures
from controlplane.planning.snapshots import take_snapshot
from controlplane.plans.proposal_states import State
from controlplane.policies.gains import gain_between
from controlplane.proposals.notifications import tell
from controlplane.topology.applicability import counted, obstacles

logger = logging.getLogger(__name__)

# A waiting proposal is reviewed as often, if reviewing it takes no more than a twentieth of that.
EVERY: Final = timedelta(seconds=20)
TIMES: Final = 20.0


@dataclass(frozen=True)
class Review:
    """What a plan would do now.

    `version`: the routing version for which it was computed, at `at` (ISO 8601), in `took_s`
    seconds. `applicable`: the number of actions that can be applied; `obstacles`: of the others, by
    code. `before`, `after`: measures by name, without and with the applicable actions.
    `gain_lost`: the share of the gain lost since the plan was computed; None if it had no gain.
    """

    version: int
    at: str
    took_s: float
    applicable: int
    obstacles: Mapping[str, int]
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    gain_lost: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the review as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Review | None":
        """Return the review that `to_json` wrote, None if there is none."""
        return cls(**row) if row else None


def review(proposal: Proposal) -> Review:
    """Return and store what the plan of a proposal with a snapshot would do now.

    Raises `Conflict` busy if the routing table changes too quickly.
    """
    started, cluster = time.monotonic(), proposal.cluster
    snapshot = take_snapshot(cluster.pk, proposal.snapshot.nu)
    found = obstacles(cluster, proposal.plan)
    plan = [
        planned for planned, obstacle in zip(proposal.plan, found, strict=True) if obstacle is None
    ]
    adapter = adapters().get(proposal.planner)
    more = adapter.measures if adapter is not None else ()
    before, after = measures(snapshot, (), more), measures(snapshot, plan, more)
    fresh = Review(
        version=snapshot.version,
        at=timezone.now().isoformat(),
        took_s=round(time.monotonic() - started, 3),
        applicable=len(plan),
        obstacles=counted(found),
        before=before,
        after=after,
        gain_lost=gain_lost(proposal, before, after),
    )
    proposal.review = fresh.to_json()
    Proposal.objects.filter(pk=proposal.pk).update(review=proposal.review)
    return fresh


def gain_lost(
    proposal: Proposal, before: Mapping[str, Any], after: Mapping[str, Any]
) -> float | None:
    """Return the share of a plan's gain that is lost with these measures, 0 to 1.

    The gain is the absolute one in the measure that the plan improved most.
    """
    promised = gain_between(proposal.planner, proposal.before, proposal.after)
    was = abs(promised.after - promised.before)
    if promised.share <= 0 or not was:
        return None
    now = gain_between(proposal.planner, before, after, promised.measure)
    left = abs(now.after - now.before) if now.share > 0 else 0.0
    return min(1.0, max(0.0, 1 - left / was))


def review_waiting(now: datetime) -> int:
    """Review the proposals that wait for a decision, as far as it is time; returns how many."""
    waiting = Proposal.objects.filter(
        state__in=(State.READY, State.APPROVED), snapshot_row__isnull=False
    ).select_related("cluster", "snapshot_row")
    reviewed = 0
    for proposal in waiting.order_by("requested_at").iterator(chunk_size=1):
        if not _is_due(proposal, now):
            continue
        try:
            before, fresh = proposal.review, review(proposal)
        except Exception:
            # An error in one proposal does not affect the others.
            logger.exception("No review of %s", proposal)
            continue
        if _differs(before, fresh):
            tell(proposal, f"{fresh.applicable} of {len(proposal.actions)} actions apply now")
        reviewed += 1
    return reviewed


def _is_due(proposal: Proposal, now: datetime) -> bool:
    last = Review.from_json(proposal.review)
    if last is None:
        return now - proposal.requested_at >= EVERY
    pause = max(EVERY, timedelta(seconds=TIMES * last.took_s))
    return now - datetime.fromisoformat(last.at) >= pause


def _differs(before: Mapping[str, Any], fresh: Review) -> bool:
    return not before or (before["applicable"], before["gain_lost"]) != (
        fresh.applicable, fresh.gain_lost,
    )  # fmt: skip
