"""Applying a proposal: exactly the sealed moves, in one routing version, or a refusal.

A query without results so far has no state to lose and is simply moved. One with state begins a
new run on its new node if the operator accepts that (restart), and stays where it is otherwise.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone
from redis import RedisError

from controlplane.connections import redis_client
from controlplane.errors import Conflict
from controlplane.models import Cluster, Node, Proposal, Query, Task
from controlplane.problems.snapshot import seal_of
from controlplane.services import audit, routing
from controlplane.services.access import Actor, require_operator
from controlplane.services.proposals.drift import Drift, drift_of, places
from controlplane.services.proposals.telling import tell
from controlplane.wire.results import has_results
from controlplane.wire.routing import MoveQuery

CHUNK = 500
RESTARTED_NOTE = "had state: its open windows began anew"
KEPT_NOTE = "has state: stays until a restart is accepted"
ENDED_NOTE = "ended before the proposal was applied"


class _Stale(Exception):
    """Rolls the claim back; carries what drifted."""

    def __init__(self, drift: Drift) -> None:
        self.drift = drift
        super().__init__(str(drift))


@dataclass(frozen=True)
class _Order:
    """What an operator approved, and which queries have state to lose."""

    actor: Actor
    restart: bool
    stateful: frozenset[int]


def apply(actor: Actor, proposal: Proposal, seal: str, *, restart: bool = False) -> Proposal:
    """Carry out the moves that the seal names; done once the pipeline runs with them.

    Raises `Forbidden`, and `Conflict` with code not_ready, wrong_seal, another_applying, stale
    (data: the drift) or redis_away.
    """
    require_operator(actor)
    proposal.refresh_from_db()
    _require_ready(proposal)
    _require_seal(proposal, seal)
    order = _Order(actor, restart, _with_state(proposal))
    try:
        routing.retry_when_moved(lambda: _apply(order, proposal.pk))
    except _Stale as stale:
        _mark_stale(actor, proposal, stale.drift)
        told = f"Out of date: {stale.drift}. Ask for a new proposal"
        raise Conflict("stale", told, stale.drift.to_json()) from None
    except IntegrityError:
        raise Conflict("another_applying", "Another proposal is being applied") from None
    proposal.refresh_from_db()
    return proposal


def finish(cluster_id: int, applied_version: int) -> int:
    """Complete the applying proposal that the pipeline now runs with; returns how many."""
    applying = Proposal.objects.select_related("cluster").filter(
        cluster=cluster_id,
        state=Proposal.State.APPLYING,
        routing_versions__version__lte=applied_version,
    )
    finished = 0
    for proposal in applying:
        claimed = Proposal.objects.filter(pk=proposal.pk, state=Proposal.State.APPLYING)
        if claimed.update(state=Proposal.State.DONE) == 1:
            finished += 1
            tell(proposal, "done", Proposal.State.DONE)
    return finished


def _require_ready(proposal: Proposal) -> None:
    if proposal.state != Proposal.State.READY:
        told = f"The proposal is {proposal.state}, not ready"
        raise Conflict("not_ready", told, {"state": proposal.state})


def _require_seal(proposal: Proposal, seal: str) -> None:
    if seal != proposal.seal or seal != seal_of(proposal.moves, proposal.snapshot):
        raise Conflict("wrong_seal", "The seal does not name these moves", {"seal": proposal.seal})


def _with_state(proposal: Proposal) -> frozenset[int]:
    ids = [move["query"] for move in proposal.moves]
    try:
        return (
            frozenset(has_results(redis_client(), proposal.cluster.slug, ids))
            if ids
            else frozenset()
        )
    except RedisError as away:
        told = "Redis cannot say which queries have state; try again"
        raise Conflict("redis_away", told) from away


def _apply(order: _Order, proposal_id: int) -> None:
    claimed = Proposal.objects.filter(pk=proposal_id, state=Proposal.State.READY)
    decided = {"decided_by": order.actor.name, "decided_at": timezone.now()}
    if claimed.update(state=Proposal.State.APPLYING, **decided) != 1:
        raise Conflict("not_ready", "The proposal was decided by someone else")
    proposal = Proposal.objects.select_related("cluster").get(pk=proposal_id)
    drift = drift_of(proposal)
    if drift.stale:
        raise _Stale(drift)
    proposal.moves = _outcomes(order, proposal)
    carried = [move for move in proposal.moves if move["outcome"] in ("moved", "restarted")]
    if carried:
        _carry_out(order, proposal, carried)
    else:
        proposal.state = Proposal.State.DONE
    proposal.save(update_fields=["moves", "state"])
    _supersede(proposal, {move["query"] for move in carried})
    _record(order, proposal, drift)


def _outcomes(order: _Order, proposal: Proposal) -> list[dict[str, Any]]:
    running = places(proposal)
    return [move | _outcome(order, move, running) for move in proposal.moves]


def _outcome(order: _Order, move: dict[str, Any], running: dict[int, int]) -> dict[str, str]:
    if move["query"] not in running:
        return {"outcome": "ended", "note": ENDED_NOTE}
    if move["query"] not in order.stateful:
        return {"outcome": "moved", "note": ""}
    if order.restart:
        return {"outcome": "restarted", "note": RESTARTED_NOTE}
    return {"outcome": "kept", "note": KEPT_NOTE}


def _carry_out(order: _Order, proposal: Proposal, carried: list[dict[str, Any]]) -> None:
    cluster = Cluster.objects.get(pk=proposal.cluster_id)
    ids = [move["query"] for move in carried]
    runs = _begin_runs(ids)
    ops = [MoveQuery(move["query"], runs[move["query"]], move["to"]) for move in carried]
    version = routing.append(
        cluster.pk,
        cluster.routing_version,
        ops,
        f"Proposal {proposal.pk}: {len(ops)} queries moved",
        actor=order.actor.name,
        proposal=proposal,
    ).version
    nodes = dict(Node.objects.filter(cluster=cluster).values_list("index", "id"))
    for target in sorted({move["to"] for move in carried}):
        moving = [move["query"] for move in carried if move["to"] == target]
        for begin in range(0, len(moving), CHUNK):
            tasks = Task.objects.filter(query__in=moving[begin : begin + CHUNK])
            tasks.update(node=nodes[target], since_version=version)


def _begin_runs(ids: list[int]) -> dict[int, int]:
    """Count every query's run on and return the new ones."""
    runs: dict[int, int] = {}
    for begin in range(0, len(ids), CHUNK):
        chunk = Query.objects.filter(pk__in=ids[begin : begin + CHUNK])
        chunk.update(run=F("run") + 1)
        runs |= dict(chunk.values_list("id", "run"))
    return runs


def _supersede(applied: Proposal, moved: set[int]) -> None:
    """Retire the other ready proposals that speak of a query that just moved."""
    ready = Proposal.objects.select_related("cluster").filter(
        cluster=applied.cluster_id, state=Proposal.State.READY
    )
    for other in ready.defer("snapshot"):
        if any(move["query"] in moved for move in other.moves):
            retired = Proposal.objects.filter(pk=other.pk, state=Proposal.State.READY)
            retired.update(state=Proposal.State.SUPERSEDED)
            tell(other, f"superseded by proposal {applied.pk}", Proposal.State.SUPERSEDED)


def _record(order: _Order, proposal: Proposal, drift: Drift) -> None:
    outcomes = Counter(move["outcome"] for move in proposal.moves)
    audit.record(
        order.actor,
        "proposal.apply",
        str(proposal),
        cluster=proposal.cluster,
        before={"seal": proposal.seal, "drift": drift.to_json()},
        after={"restart": order.restart, "outcomes": dict(outcomes)},
    )
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    tell(proposal, f"applied by {order.actor.name}: {told or 'nothing to move'}")


@transaction.atomic
def _mark_stale(actor: Actor, proposal: Proposal, drift: Drift) -> None:
    ready = Proposal.objects.filter(pk=proposal.pk, state=Proposal.State.READY)
    if ready.update(state=Proposal.State.STALE, error=str(drift)) == 1:
        audit.record(
            actor,
            "proposal.stale",
            str(proposal),
            cluster=proposal.cluster,
            after=drift.to_json(),
        )
        tell(proposal, f"stale: {drift}", Proposal.State.STALE)
