"""What changed between a proposal's snapshot and now."""

from dataclasses import asdict, dataclass
from typing import Any

from controlplane.models import Node, Proposal, Query, Stream, Task


@dataclass(frozen=True)
class Drift:
    """ended: queries of the snapshot that run no more; new: running queries it does not know.

    gone_nodes: node indices that were active; moved: names of queries to move that are elsewhere
    by now; rate_change: sum of |rate now - then| over the sum of rates then.
    """

    ended: int
    new: int
    gone_nodes: list[int]
    moved: list[str]
    rate_change: float

    @property
    def stale(self) -> bool:
        """Tell whether the moves no longer mean what was approved."""
        return bool(self.gone_nodes or self.moved)

    def to_json(self) -> dict[str, Any]:
        """Return the drift as JSON values."""
        return asdict(self) | {"stale": self.stale}

    def __str__(self) -> str:
        """Return one sentence for a person."""
        told = [f"{self.ended} queries ended, {self.new} are new"]
        if self.gone_nodes:
            told.append(f"nodes {', '.join(map(str, self.gone_nodes))} are not active")
        if self.moved:
            told.append(f"{len(self.moved)} of the queries are on another node by now")
        return ", ".join([*told, f"rates changed by {self.rate_change:.0%}"])


def drift_of(proposal: Proposal) -> Drift:
    """Return the drift of a proposal that has a snapshot."""
    snapshot = proposal.snapshot
    known = {query for query, *_ in snapshot["queries"]}
    where = places(proposal)
    return Drift(
        ended=len(known - where.keys()),
        new=len(where.keys() - known),
        gone_nodes=_gone_nodes(proposal),
        moved=[
            move["name"]
            for move in proposal.moves
            if where.get(move["query"], move["from"]) != move["from"]
        ],
        rate_change=_rate_change(proposal),
    )


def places(proposal: Proposal) -> dict[int, int]:
    """Return the node index of every running query of the proposal's cluster that is not split."""
    running = Task.objects.filter(
        query__cluster=proposal.cluster_id,
        query__state=Query.State.RUNNING,
        query__task_count=1,
    )
    return dict(running.values_list("query_id", "node__index"))


def _gone_nodes(proposal: Proposal) -> list[int]:
    then = {node["index"] for node in proposal.snapshot["nodes"] if node["active"]}
    active = Node.objects.filter(cluster=proposal.cluster_id, active=True)
    return sorted(then - set(active.values_list("index", flat=True)))


def _rate_change(proposal: Proposal) -> float:
    now = {
        stream.pk: stream.weight for stream in Stream.objects.filter(cluster=proposal.cluster_id)
    }
    then = proposal.snapshot["streams"]
    total = sum(rate for _, rate in then)
    changed = sum(abs(now.get(stream, 0.0) - rate) for stream, rate in then)
    return changed / total if total else 0.0
