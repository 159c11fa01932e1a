"""Drift: the changes since a proposal's snapshot, and whether the policy tolerates them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from controlplane.models import Cluster, Node, Proposal, Query, Stream
from controlplane.plans.proposal_states import State
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.proposals.review import Review
from controlplane.topology.applicability import OBSTACLES, Obstacle, count_obstacles, obstacles


@dataclass(frozen=True)
class Drift:
    """The difference between the cluster and the snapshot.

    `queries`: the number of queries in the snapshot; `ended`: those that ended; `new`: running
    queries that are not in the snapshot. `gone_nodes`: indices of deactivated nodes; `capacities`:
    indices of nodes with another capacity. `obstacles`: the number of actions that cannot be
    applied, by code (topology.applicability). `rate_change`: the sum of |rate now - then| over the
    sum of rates then. `gain_lost`: that of the last review (proposals.review), None if unknown.
    `exceeded`: clauses about the values beyond the policy's tolerance.
    """

    ended: int
    new: int
    queries: int
    gone_nodes: list[int]
    capacities: list[int]
    obstacles: Mapping[str, int]
    rate_change: float
    gain_lost: float | None = None
    exceeded: list[str] = field(default_factory=list)

    @property
    def stale(self) -> bool:
        """Return whether a value exceeds the policy's tolerance."""
        return bool(self.exceeded)

    def to_json(self) -> dict[str, Any]:
        """Return the drift as JSON values."""
        return asdict(self) | {"stale": self.stale}

    def __str__(self) -> str:
        """Return the drift as one sentence."""
        queries = "query" if self.ended == 1 else "queries"
        parts = [f"{self.ended} {queries} ended, {self.new} new"]
        parts += [f"rates changed by {self.rate_change:.0%}"]
        return "; ".join([*self.exceeded, ", ".join(parts)])


def drift_of(proposal: Proposal, done: int = 0, policy: PolicySettings | None = None) -> Drift:
    """Return the drift of a proposal, whose first `done` actions were published."""
    snapshot = proposal.snapshot
    known = {query for query, *_ in (*snapshot.queries, *snapshot.split)}
    running = set(
        Query.objects.filter(
            cluster=proposal.cluster_id, state=Query.State.RUNNING
        ).values_list("id", flat=True)
    )  # fmt: skip
    deactivated, capacities = _nodes(proposal, done)
    ended = len(known - running)
    drift = Drift(
        ended=ended,
        new=len(running - known),
        queries=len(known),
        gone_nodes=deactivated,
        capacities=capacities,
        obstacles=_obstacles(proposal, done, ended),
        rate_change=_rate_change(proposal),
        gain_lost=_gain_lost(proposal),
    )
    exceeded = _exceeded(drift, policy or policy_of(proposal.cluster))
    return Drift(**{**asdict(drift), "exceeded": exceeded})


def _exceeded(drift: Drift, policy: PolicySettings) -> list[str]:
    exceeded = []
    if drift.gone_nodes:
        exceeded.append(f"nodes {_numbers(drift.gone_nodes)} are no longer active")
    if drift.capacities:
        exceeded.append(f"the capacity of nodes {_numbers(drift.capacities)} has changed")
    changed = drift.obstacles.get(Obstacle.CHANGED, 0)
    if changed:
        exceeded.append(f"{changed} actions: {OBSTACLES[Obstacle.CHANGED]}")
    bounds = (
        ("of the queries have ended", drift.ended, policy.tolerated_ended),
        ("as many queries are new", drift.new, policy.tolerated_new),
    )
    for what, count, tolerated in bounds:
        share = count / drift.queries if drift.queries else 0.0
        if share > tolerated:
            exceeded.append(f"{share:.0%} {what}, {tolerated:.0%} are tolerated")
    if drift.rate_change > policy.tolerated_rates:
        exceeded.append(
            f"rates changed by {drift.rate_change:.0%}, {policy.tolerated_rates:.0%} is tolerated"
        )
    if drift.gain_lost is not None and drift.gain_lost > policy.tolerated_gain_loss:
        exceeded.append(
            f"{drift.gain_lost:.0%} of the gain is lost, {policy.tolerated_gain_loss:.0%} is"
            " tolerated"
        )
    return exceeded


def _obstacles(proposal: Proposal, done: int, ended: int) -> Mapping[str, int]:
    """Return the number of actions that cannot be applied by code, without the first `done`.

    `ended`: how many queries of the snapshot do not run any more.
    """
    last = Review.from_json(proposal.review)
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


def _numbers(indices: Sequence[int]) -> str:
    return ", ".join(map(str, indices))


def _nodes(proposal: Proposal, done: int) -> tuple[list[int], list[int]]:
    """Return the deactivated nodes, and those with another capacity.

    Changes by the first `done` actions of the proposal are no drift.
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
