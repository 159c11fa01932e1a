"""What changed between a proposal's snapshot and now, and whether the policy tolerates it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from controlplane.models import Node, Proposal, Query, Stream, Task
from controlplane.planning.execution_plan import tasks_of
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of

CHUNK = 500


@dataclass(frozen=True)
class Drift:
    """How far the cluster is from the snapshot.

    ended, new: queries of the snapshot that run no more, and running ones it does not know, of
    `queries` that it knows. gone_nodes: indices of nodes that were active; capacities: indices of
    those of which the capacity has changed. moved: names of queries that are still to move and are
    elsewhere by now. rate_change: sum of |rate now - then| over the sum of rates then. exceeded:
    what of this is beyond the policy's tolerance, in a person's words.
    """

    ended: int
    new: int
    queries: int
    gone_nodes: list[int]
    capacities: list[int]
    moved: list[str]
    rate_change: float
    exceeded: list[str] = field(default_factory=list)

    @property
    def stale(self) -> bool:
        """Tell whether the moves no longer mean what was approved."""
        return bool(self.exceeded)

    def to_json(self) -> dict[str, Any]:
        """Return the drift as JSON values."""
        return asdict(self) | {"stale": self.stale}

    def __str__(self) -> str:
        """Return one sentence for a person."""
        told = [f"{self.ended} queries ended, {self.new} are new"]
        told += [f"rates changed by {self.rate_change:.0%}"]
        return "; ".join([*self.exceeded, ", ".join(told)])


def drift_of(proposal: Proposal, done: int = 0, policy: PolicySettings | None = None) -> Drift:
    """Return the drift of a proposal that has a snapshot, of which `done` moves are carried out."""
    snapshot = proposal.snapshot
    known = {query for query, *_ in (*snapshot.queries, *snapshot.split)}
    running = set(
        Query.objects.filter(
            cluster=proposal.cluster_id, state=Query.State.RUNNING
        ).values_list("id", flat=True)
    )  # fmt: skip
    gone, capacities = _nodes(proposal)
    found = Drift(
        ended=len(known - running),
        new=len(running - known),
        queries=len(known),
        gone_nodes=gone,
        capacities=capacities,
        moved=_moved(proposal.moves[done:]),
        rate_change=_rate_change(proposal),
    )
    exceeded = _exceeded(found, policy or policy_of(proposal.cluster))
    return Drift(**{**asdict(found), "exceeded": exceeded})


def _exceeded(drift: Drift, policy: PolicySettings) -> list[str]:
    told = []
    if drift.gone_nodes:
        told.append(f"nodes {_numbers(drift.gone_nodes)} are not active any more")
    if drift.capacities:
        told.append(f"the capacity of nodes {_numbers(drift.capacities)} has changed")
    if drift.moved:
        told.append(f"{len(drift.moved)} of the queries to move are on another node by now")
    bounds = (
        ("of the queries have ended", drift.ended, policy.tolerated_ended),
        ("as many queries are new", drift.new, policy.tolerated_new),
    )
    for what, count, tolerated in bounds:
        share = count / drift.queries if drift.queries else 0.0
        if share > tolerated:
            told.append(f"{share:.0%} {what}, {tolerated:.0%} are tolerated")
    if drift.rate_change > policy.tolerated_rates:
        told.append(
            f"rates changed by {drift.rate_change:.0%}, {policy.tolerated_rates:.0%} is tolerated"
        )
    return told


def _numbers(indices: Sequence[int]) -> str:
    return ", ".join(map(str, indices))


def places_of(queries: Iterable[int]) -> dict[tuple[int, int], int]:
    """Return the node index of every task of these queries that run, by query and task."""
    ids = sorted(set(queries))
    found: dict[tuple[int, int], int] = {}
    for begin in range(0, len(ids), CHUNK):
        rows = Task.objects.filter(
            query__in=ids[begin : begin + CHUNK], query__state=Query.State.RUNNING
        ).order_by("query_id", "-index")
        past: dict[int, int] = {}
        columns = ("query_id", "query__task_count", "index", "node__index")
        for query, count, first, node in rows.values_list(*columns):
            for task in range(first, past.get(query, count)):
                found[query, task] = node
            past[query] = first
    return found


def _moved(moves: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the queries to move that are not where they were."""
    where = places_of(move["query"] for move in moves)
    expected: dict[tuple[int, int], tuple[str, int]] = {}
    for move in moves:
        for task in range(*tasks_of(move)):
            # A task that moves twice begins with its first move.
            expected.setdefault((move["query"], task), (move["name"], move["from"]))
    return sorted(
        {name for place, (name, node) in expected.items() if where.get(place, node) != node}
    )


def _nodes(proposal: Proposal) -> tuple[list[int], list[int]]:
    """Return the nodes that are active no more, and those that are not as fast as they were."""
    then = {node.index: node.capacity for node in proposal.snapshot.nodes if node.active}
    active = Node.objects.filter(cluster=proposal.cluster_id, active=True)
    now = dict(active.values_list("index", "capacity"))
    changed = [index for index, capacity in then.items() if now.get(index, capacity) != capacity]
    return sorted(then.keys() - now.keys()), sorted(changed)


def _rate_change(proposal: Proposal) -> float:
    now = {
        stream.pk: stream.weight for stream in Stream.objects.filter(cluster=proposal.cluster_id)
    }
    then = proposal.snapshot.streams
    total = sum(rate for _, rate in then)
    changed = sum(abs(now.get(stream, 0.0) - rate) for stream, rate in then)
    return changed / total if total else 0.0
