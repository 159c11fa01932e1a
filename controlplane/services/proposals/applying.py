"""Applying a proposal: exactly the sealed moves, in one routing version, or a refusal.

Moves are live: the old node hands a query's state on to the new one within the pipeline, so that
its windows go on, its run stays the same and each record still counts once.
"""

from collections import Counter
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.errors import Conflict
from controlplane.models import Cluster, Node, Proposal, Task
from controlplane.problems.snapshot import seal_of
from controlplane.services import audit, routing
from controlplane.services.access import Actor, require_operator
from controlplane.services.proposals.drift import Drift, drift_of, places
from controlplane.services.proposals.telling import tell
from controlplane.wire.routing import MoveTasks

CHUNK = 500
ENDED_NOTE = "ended before the proposal was applied"


class _Stale(Exception):
    """Rolls the claim back; carries what drifted."""

    def __init__(self, drift: Drift) -> None:
        self.drift = drift
        super().__init__(str(drift))


def apply(actor: Actor, proposal: Proposal, seal: str) -> Proposal:
    """Carry out the moves that the seal names; done once the pipeline runs with them.

    Raises `Forbidden`, and `Conflict` with code not_ready, wrong_seal, another_applying or stale
    (data: the drift).
    """
    require_operator(actor)
    proposal.refresh_from_db()
    _require_ready(proposal)
    _require_seal(proposal, seal)
    try:
        routing.retry_when_moved(lambda: _apply(actor, proposal.pk))
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


def _apply(actor: Actor, proposal_id: int) -> None:
    claimed = Proposal.objects.filter(pk=proposal_id, state=Proposal.State.READY)
    decided = {"decided_by": actor.name, "decided_at": timezone.now()}
    if claimed.update(state=Proposal.State.APPLYING, **decided) != 1:
        raise Conflict("not_ready", "The proposal was decided by someone else")
    proposal = Proposal.objects.select_related("cluster").get(pk=proposal_id)
    drift = drift_of(proposal)
    if drift.stale:
        raise _Stale(drift)
    proposal.moves = _outcomes(proposal)
    carried = [move for move in proposal.moves if move["outcome"] == "moved"]
    if carried:
        _carry_out(actor, proposal, carried)
    else:
        proposal.state = Proposal.State.DONE
    proposal.save(update_fields=["moves", "state"])
    _supersede(proposal, {move["query"] for move in carried})
    _record(actor, proposal, drift)


def _outcomes(proposal: Proposal) -> list[dict[str, Any]]:
    running = places(proposal)
    return [move | _outcome(move, running) for move in proposal.moves]


def _outcome(move: dict[str, Any], running: dict[int, int]) -> dict[str, str]:
    if move["query"] not in running:
        return {"outcome": "ended", "note": ENDED_NOTE}
    return {"outcome": "moved", "note": ""}


def _carry_out(actor: Actor, proposal: Proposal, carried: list[dict[str, Any]]) -> None:
    cluster = Cluster.objects.get(pk=proposal.cluster_id)
    # Proposals speak of queries of one task only.
    ops = [MoveTasks(move["query"], ((move["to"], 0, 1),)) for move in carried]
    version = routing.append(
        cluster.pk,
        cluster.routing_version,
        ops,
        f"Proposal {proposal.pk}: {len(ops)} queries moved",
        actor=actor.name,
        proposal=proposal,
    ).version
    nodes = dict(Node.objects.filter(cluster=cluster).values_list("index", "id"))
    for target in sorted({move["to"] for move in carried}):
        moving = [move["query"] for move in carried if move["to"] == target]
        for begin in range(0, len(moving), CHUNK):
            tasks = Task.objects.filter(query__in=moving[begin : begin + CHUNK])
            tasks.update(node=nodes[target], since_version=version)


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


def _record(actor: Actor, proposal: Proposal, drift: Drift) -> None:
    outcomes = Counter(move["outcome"] for move in proposal.moves)
    audit.record(
        actor,
        "proposal.apply",
        str(proposal),
        cluster=proposal.cluster,
        before={"seal": proposal.seal, "drift": drift.to_json()},
        after={"outcomes": dict(outcomes)},
    )
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    tell(proposal, f"applied by {actor.name}: {told or 'nothing to move'}")


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
