"""Proposals that the cluster has drifted away from."""

from django.db import transaction

from controlplane.access.roles import Actor
from controlplane.errors import Conflict
from controlplane.models import Proposal
from controlplane.proposals.drift import Drift, drift_of
from controlplane.proposals.review import review
from controlplane.proposals.transitions import WEIR, move_on, unchanged


def refuse_if_stale(proposal: Proposal) -> None:
    """Raise `Conflict` stale, with the drift, where a ready proposal fits no more; it is marked."""
    if proposal.state != Proposal.State.READY:
        return
    if proposal.snapshot_row is not None:
        review(proposal)
    drift = drift_of(proposal)
    if drift.stale and outdate(proposal, drift):
        told = f"Out of date: {drift}. Ask for it anew"
        raise Conflict("stale", told, drift.to_json())


@transaction.atomic
def outdate(proposal: Proposal, drift: Drift, by: Actor = WEIR) -> bool:
    """Mark a proposal as stale, with what drifted by how much.

    Returns whether it was: not where it has gone on since it was read. What its own execution has
    moved by now is no drift.
    """
    if not unchanged(proposal):
        return False
    move_on(by, proposal, "outdate", told=f"stale: {drift}", error=str(drift),
            drift=drift.to_json())  # fmt: skip
    return True
