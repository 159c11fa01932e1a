"""Drift: the changes since a proposal's snapshot, and whether the policy tolerates them.

Measured values (rates, queries, gain) must drift for a time, the policy's `drift_hold_s`, before
the proposal is stale: an outage passes. What people change (nodes, capacities, the objects of
actions) makes it stale immediately. Only observed drift counts: while nobody observes it, or the
cluster reports no samples, the time starts again.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from controlplane.models import Cluster, Node, Proposal, Query, Stream
from controlplane.numbers import counted, lowered, percent
from controlplane.planning.adapters import all_measures
from controlplane.plans.proposal_states import State
from controlplane.policies.gate import PlanGate
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.proposals.review import Review
from controlplane.telemetry.arrivals.catching_up import oldest_s
from controlplane.topology.applicability import OBSTACLES, Obstacle, count_obstacles, obstacles


@dataclass(frozen=True)
class Drift:
    """The difference between the cluster and the snapshot.

    `queries`: the number of queries in the snapshot; `ended`: those that ended; `new`: running
    queries that are not in the snapshot. `gone_nodes`: indices of deactivated nodes; `capacities`:
    indices of nodes with another capacity. `obstacles`: the number of actions that cannot be
    applied, by code (topology.applicability). `rate_change`: the sum of |rate now - then| over the
    sum of rates then. `gain_lost`: that of the last review (proposals.review), None if unknown;
    `raised`: the measures that the plan would raise above their limit, `left`: those that it was to
    have within their limit and would not, both by the same review.
    `exceeded`: clauses about the values beyond the policy's tolerance; `changed`: True if one of
    them is about a change by people. `drifting_since`: since when (ISO 8601) values are beyond it,
    None if they are not; `lasted_s`: for how many observed seconds, `hold_s`: from how many the
    proposal is stale.
    """

    ended: int
    new: int
    queries: int
    gone_nodes: list[int]
    capacities: list[int]
    obstacles: Mapping[str, int]
    rate_change: float
    gain_lost: float | None = None
    raised: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    exceeded: list[str] = field(default_factory=list)
    changed: bool = False
    drifting_since: str | None = None
    lasted_s: float = 0.0
    hold_s: float = 0.0

    @property
    def stale(self) -> bool:
        """Return whether a value exceeds the policy's tolerance for long enough."""
        return bool(self.exceeded) and (self.changed or self.lasted_s >= self.hold_s)

    def to_json(self) -> dict[str, Any]:
        """Return the drift as JSON values."""
        return asdict(self) | {"stale": self.stale}

    def __str__(self) -> str:
        """Return the drift as one sentence."""
        parts = [f"{counted(self.ended, 'queries')} ended, {self.new} new"]
        parts += [f"rates changed by {percent(self.rate_change)}"]
        return "; ".join([*self.exceeded, ", ".join(parts)])


def delays_start(drift: Drift, policy: PolicySettings) -> bool:
    """Return whether an approved plan waits with its start: what it would do now is not enough.

    Where its present gain is known, that decides, however much rates and queries have changed.
    """
    if drift.gain_lost is None or drift.raised:
        return bool(drift.exceeded)
    return drift.gain_lost > policy.tolerated_gain_loss


_CLAUSES: Final = {
    "ended": "{} of the queries have ended, {} are tolerated",
    "new": "{} as many queries are new, {} are tolerated",
    "rates": "rates changed by {}, {} is tolerated",
    "gain": "{} of the gain is lost, {} is tolerated",
}
# A drift that is not observed for this time starts again.
UNSEEN: Final = timedelta(seconds=60)
# The observation is stored again after this time, as advances come every two seconds.
STORED_EVERY: Final = timedelta(seconds=5)


# The pause between two reviews, in times of their duration, with room.
REVIEW_TIMES: Final = 40.0


def observe_drift(
    proposal: Proposal,
    done: int = 0,
    policy: PolicySettings | None = None,
    now: datetime | None = None,
) -> Drift:
    """Return the drift as `drift_of`, and store since when the proposal drifts."""
    now = now or timezone.now()
    drift = drift_of(proposal, done, policy, now)
    since = _since(proposal, drift, now)
    seen_at = proposal.drift_seen_at
    is_new = since != proposal.drifting_since or seen_at is None or now - seen_at >= STORED_EVERY
    if is_new and (since is None or _is_observable(proposal, now)):
        seen = now if since is not None else None
        if (since, seen) != (proposal.drifting_since, seen_at):
            proposal.drifting_since, proposal.drift_seen_at = since, seen
            Proposal.objects.filter(pk=proposal.pk).update(drifting_since=since, drift_seen_at=seen)
    return drift


def drift_of(
    proposal: Proposal,
    done: int = 0,
    policy: PolicySettings | None = None,
    now: datetime | None = None,
) -> Drift:
    """Return the drift of a proposal, whose first `done` actions were published."""
    policy, now = policy or policy_of(proposal.cluster), now or timezone.now()
    raised, left = _beyond_limits(proposal, policy)
    measured = replace(_measured(proposal, done), raised=raised, left=left)
    changes, values = _changed(measured), _exceeded(measured, policy)
    # Beyond a limit for as long as for an alert, a plan is not offered any longer.
    hold_s = policy.drift_hold_s
    if measured.raised or measured.left:
        hold_s = min(hold_s, policy.alert_hold_s)
    drift = replace(measured, exceeded=[*changes, *values], changed=bool(changes), hold_s=hold_s)
    since = _since(proposal, drift, now)
    if since is None:
        return drift
    # The time without samples does not count, and ends with a new start.
    lasted = (now - since).total_seconds() if _is_observable(proposal, now) else 0.0
    return replace(drift, drifting_since=since.isoformat(), lasted_s=round(lasted, 3))


def _since(proposal: Proposal, drift: Drift, now: datetime) -> datetime | None:
    """Return since when a proposal drifts without a pause of the observation, None if it does not.

    Reviews of large clusters are rare.
    """
    if not drift.exceeded:
        return None
    since, seen_at = proposal.drifting_since, proposal.drift_seen_at
    took = timedelta(seconds=proposal.review.get("took_s", 0.0))
    if since is None or seen_at is None or now - seen_at > UNSEEN + REVIEW_TIMES * took:
        return now
    return min(since, now)


def _is_observable(proposal: Proposal, now: datetime) -> bool:
    """Return whether the cluster reports samples, or has never reported any."""
    rows = Cluster.objects.filter(pk=proposal.cluster_id)
    seen_at, trigger_ms = rows.values_list("last_sample_at", "trigger_ms").get()
    return seen_at is None or (now - seen_at).total_seconds() <= oldest_s(trigger_ms)


def _measured(proposal: Proposal, done: int) -> Drift:
    snapshot = proposal.snapshot
    known = {query for query, *_ in (*snapshot.queries, *snapshot.split)}
    running = set(
        Query.objects.filter(
            cluster=proposal.cluster_id, state=Query.State.RUNNING
        ).values_list("id", flat=True)
    )  # fmt: skip
    deactivated, capacities = _nodes(proposal, done)
    ended = len(known - running)
    return Drift(
        ended=ended,
        new=len(running - known),
        queries=len(known),
        gone_nodes=deactivated,
        capacities=capacities,
        obstacles=_obstacles(proposal, done, ended),
        rate_change=_rate_change(proposal),
        gain_lost=_gain_lost(proposal),
    )


def _changed(drift: Drift) -> list[str]:
    """Return clauses about the changes by people, which no plan tolerates."""
    exceeded = []
    if drift.gone_nodes:
        exceeded.append(f"nodes {_numbers(drift.gone_nodes)} are no longer active")
    if drift.capacities:
        exceeded.append(f"the capacity of nodes {_numbers(drift.capacities)} has changed")
    changed = drift.obstacles.get(Obstacle.CHANGED, 0)
    if changed:
        exceeded.append(f"{changed} actions: {OBSTACLES[Obstacle.CHANGED]}")
    return exceeded


def tolerances(drift: Mapping[str, Any], policy: PolicySettings) -> list[tuple[str, float, float]]:
    """Return the measured values of a drift with what the policy tolerates, by name."""
    count = drift["queries"] or math.inf
    rows = [
        ("ended", drift["ended"] / count, policy.tolerated_ended),
        ("new", drift["new"] / count, policy.tolerated_new),
        ("rates", drift["rate_change"], policy.tolerated_rates),
    ]
    if drift["gain_lost"] is not None:
        rows.append(("gain", drift["gain_lost"], policy.tolerated_gain_loss))
    return rows


def _exceeded(drift: Drift, policy: PolicySettings) -> list[str]:
    """Return clauses about the measured values beyond the policy's tolerance."""
    clauses = [
        _CLAUSES[name].format(percent(value), percent(tolerated))
        for name, value, tolerated in tolerances(asdict(drift), policy)
        if value > tolerated
    ]
    clauses += [would_exceed(drift.raised)] if drift.raised else []
    return clauses + ([f"the plan no longer ends the {_titles(drift.left)}"] if drift.left else [])


def _obstacles(proposal: Proposal, done: int, ended: int) -> Mapping[str, int]:
    """Return the number of actions that cannot be applied by code, without the first `done`.

    `ended`: how many queries of the snapshot do not run any more.
    """
    last = Review.stored(proposal.review)
    # Obstacles change with the routing version, and with the end of a query shortly before it.
    if last is not None and not done and not ended:
        present = Cluster.objects.filter(pk=proposal.cluster_id, routing_version=last.version)
        if present.exists():
            return last.obstacles
    return count_obstacles(obstacles(proposal.cluster, proposal.plan[done:]))


def _gain_lost(proposal: Proposal) -> float | None:
    """Return the share of the gain that was lost at the last review.

    None for other states: the execution of a plan realizes its gain.
    """
    if proposal.state not in (State.READY, State.APPROVED) or not proposal.review:
        return None
    lost: float | None = proposal.review["gain_lost"]
    return lost


def would_exceed(raised: Sequence[str]) -> str:
    """Return the clause about the measures that a plan would raise above their limit."""
    return f"the plan would exceed the limit of the {_titles(raised)}"


def _titles(names: Sequence[str]) -> str:
    known = all_measures()
    titles = (lowered(known[name].title) if name in known else name for name in names)
    return " and ".join(titles)


def _beyond_limits(proposal: Proposal, policy: PolicySettings) -> tuple[list[str], list[str]]:
    """Return the measures that a plan would raise above their limit, and that it would leave so."""
    if _gain_lost(proposal) is None:
        return [], []
    gate, last = PlanGate.of(proposal, policy), proposal.review
    present = last["before"], last["after"]
    return gate.raised(*present), gate.left((proposal.before, proposal.after), present)


def _numbers(indices: Sequence[int]) -> str:
    return ", ".join(map(str, indices))


def _nodes(proposal: Proposal, done: int) -> tuple[list[int], list[int]]:
    """Return the deactivated nodes, and those with another capacity.

    Changes by the first `done` actions of the proposal are not drift.
    """
    applied = proposal.plan[:done].of_kinds("set_node_active", "set_capacity")
    own = {subject.id for planned in applied for subject in planned.action.subjects()}
    active_then = [node for node in proposal.snapshot.nodes if node.active]
    then = {node.index: node.capacity for node in active_then if node.index not in own}
    active = Node.objects.filter(cluster=proposal.cluster_id, active=True)
    now = dict(active.values_list("index", "capacity"))
    changed = [index for index, capacity in then.items() if now.get(index, capacity) != capacity]
    return sorted(then.keys() - now.keys()), sorted(changed)


def _rate_change(proposal: Proposal) -> float:
    # Schemas are slow to parse.
    streams = Stream.objects.filter(cluster=proposal.cluster_id).only("rate", "declared_rate")
    now = {stream.pk: stream.weight for stream in streams}
    then = proposal.snapshot.streams
    total = sum(rate for _, rate in then)
    changed = sum(abs(now.get(stream, 0.0) - rate) for stream, rate in then)
    return changed / total if total else 0.0
