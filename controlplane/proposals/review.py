"""Reviews: the present effect of a waiting proposal."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils import timezone

from controlplane.formats.json_values import JsonValue
from controlplane.models import Proposal
from controlplane.planning.adapters import input_readers, own_measures
from controlplane.planning.measures import measures
from controlplane.planning.plan_summary import queries_of
from controlplane.planning.snapshots import take_snapshot
from controlplane.planning.sources import MANUAL
from controlplane.plans.plan import PlannedAction
from controlplane.policies.gains import gain_between
from controlplane.policies.gate import PlanGate
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.topology.applicability import Obstacle, count_obstacles, obstacles


@dataclass(frozen=True)
class Review(JsonValue):
    """The present effect of a plan.

    `version`: the routing version of the computation, which ended `at` (ISO 8601) after `took_s`
    seconds. `applicable`: the number of actions that can be applied; `obstacles`: the
    number of the others by code. `before`, `after`: measures by name, without and with the
    applicable actions. `gain_lost`: the share of the gain that is lost since the plan was computed,
    None if it had no gain. `queries`: the number of queries that pause; `drift`: the drift at that
    time (proposals.drift) as JSON values, {} if unknown. `lost_at`: when a review saw more of the
    gain lost than the policy tolerates, for the last time (ISO 8601), "" if never.
    """

    version: int
    at: str
    took_s: float
    applicable: int
    obstacles: Mapping[str, int]
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    gain_lost: float | None
    queries: int
    drift: Mapping[str, Any] = field(default_factory=dict)
    lost_at: str = ""


def review(proposal: Proposal) -> Review:
    """Compute and store the present effect of a proposal with a snapshot.

    Raises `Conflict` busy if the routing table changes too quickly.
    """
    stopped_by = obstacles(proposal.cluster, proposal.plan)
    fresh = _reviewed(proposal, proposal.plan, stopped_by)
    lost_at = (proposal.review or {}).get("lost_at", "")
    if is_gain_lost(fresh, policy_of(proposal.cluster)):
        lost_at = fresh.at
    fresh = replace(fresh, lost_at=lost_at)
    proposal.review = fresh.to_json()
    proposal.obstacles = [
        [place, str(obstacle)] for place, obstacle in enumerate(stopped_by) if obstacle is not None
    ]
    Proposal.objects.filter(pk=proposal.pk).update(
        review=proposal.review, obstacles=proposal.obstacles
    )
    return fresh


def still_helps(proposal: Proposal, done: int, policy: PolicySettings) -> tuple[bool, float]:
    """Return whether the actions after the first `done` help as loads are now, and the time.

    They improve the measure that the plan was to improve most, and raise none above its limit.
    """
    rest = proposal.plan[done:]
    now = _reviewed(proposal, rest, obstacles(proposal.cluster, rest))
    if now.gain_lost is None or PlanGate.of(proposal, policy).raised(now.before, now.after):
        return False, now.took_s
    promised = gain_between(proposal.planner, proposal.before, proposal.after)
    gain = gain_between(proposal.planner, now.before, now.after, promised.measure)
    return gain.share > 0, now.took_s


def _reviewed(
    proposal: Proposal, plan: Sequence[PlannedAction], stopped_by: Sequence[Obstacle | None]
) -> Review:
    """Return the present effect of actions of a proposal; `stopped_by`: the obstacle of each."""
    started = time.monotonic()
    readers, more = input_readers({proposal.planner}), own_measures(proposal.planner)
    snapshot = take_snapshot(proposal.cluster_id, proposal.snapshot.nu, readers)
    pairs = zip(plan, stopped_by, strict=True)
    applicable = [planned for planned, obstacle in pairs if obstacle is None]
    before, after = measures(snapshot, (), more), measures(snapshot, applicable, more)
    return Review(
        version=snapshot.version,
        at=timezone.now().isoformat(),
        took_s=round(time.monotonic() - started, 3),
        applicable=len(applicable),
        obstacles=count_obstacles(stopped_by),
        before=before,
        after=after,
        gain_lost=gain_lost(proposal, before, after),
        queries=queries_of(applicable),
    )


def is_gain_lost(review: Review, policy: PolicySettings) -> bool:
    """Return whether more of the gain was lost at a review than the policy tolerates."""
    return review.gain_lost is not None and review.gain_lost > policy.tolerated_gain_loss


def gain_lost(
    proposal: Proposal, before: Mapping[str, Any], after: Mapping[str, Any]
) -> float | None:
    """Return the share of a plan's gain that is lost with these measures, from 0 to 1.

    The gain is the absolute change of the measure that the plan improves most. None for a manual
    plan, whose purpose is not known.
    """
    if proposal.planner == MANUAL:
        return None
    promised = gain_between(proposal.planner, proposal.before, proposal.after)
    was = abs(promised.after - promised.before)
    if promised.share <= 0 or not was:
        return None
    now = gain_between(proposal.planner, before, after, promised.measure)
    left = abs(now.after - now.before) if now.share > 0 else 0.0
    return min(1.0, max(0.0, 1 - left / was))
