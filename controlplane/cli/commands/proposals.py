"""weir proposals."""

from argparse import Namespace
from dataclasses import asdict
from typing import Final

from controlplane.access.roles import VIEWER, Actor, require_member
from controlplane.cli.actors import actor_of, viewed
from controlplane.cli.codes import Code, Refused
from controlplane.cli.output import print_answer, print_page, print_rows, values_of
from controlplane.cli.proposal_rows import print_proposal, proposal_row
from controlplane.errors import NotFound
from controlplane.executions import verbs
from controlplane.models import Proposal
from controlplane.proposals.listing import STATES, ProposalFilters, proposals_listing
from controlplane.proposals.queue import computing_queue

_COLUMNS: Final = {
    "id": ("id", "number"), "planner": ("planner", "text"), "algorithm": ("algorithm", "text"),
    "state": ("state", "text"), "actions": ("actions", "number"),
    "asked by": ("requested_by", "text"), "at (UTC)": ("requested_at", "moment"),
}  # fmt: skip
_QUEUE_COLUMNS: Final = {
    "id": ("id", "number"), "position": ("position", "number"), "planner": ("planner", "name"),
    "algorithm": ("algorithm", "name"), "asked by": ("requested_by", "name"),
    "starts within (s)": ("starts_in_s", "number"), "takes at most (s)": ("estimated_s", "number"),
}  # fmt: skip


def list_proposals(given: Namespace) -> None:
    """Print one page of a cluster's proposals."""
    _, cluster = viewed(given)
    if given.state and given.state not in STATES:
        raise Refused(Code.WRONG, f"--state {given.state}: must be one of {', '.join(STATES)}")
    page = proposals_listing(cluster, ProposalFilters.of(vars(given))).page
    rows = [
        values_of(row, "id planner algorithm state requested_by requested_at")
        | {"actions": row.predicted.get("actions"), "seal": row.seal or None}
        for row in page.rows
    ]
    print_page(given, page, "proposals", rows, _COLUMNS)


def list_queue(given: Namespace) -> None:
    """Print the cluster's proposals that are computed or wait, in the order of all clusters."""
    _, cluster = viewed(given)
    rows = [asdict(entry) for entry in computing_queue(cluster)]
    print_rows(given, rows, _QUEUE_COLUMNS, "nothing waits")


def show_proposal(given: Namespace) -> None:
    """Print one proposal."""
    actor, proposal = _proposal(given)
    print_proposal(given, actor, proposal, given.actions)


def apply_verb(given: Namespace) -> None:
    """Apply a verb to a proposal."""
    actor, proposal = _proposal(given)
    verb = verbs.verb_at(given.verb)
    proposal = verbs.apply_verb(actor, proposal, verb, seal=given.seal, reason=given.reason)
    text = f"proposal {proposal.pk} is {proposal.state}"
    print_answer(given, proposal_row(actor, proposal), text)


def _proposal(given: Namespace) -> tuple[Actor, Proposal]:
    actor = actor_of(given)
    require_member(actor)
    proposal = Proposal.objects.select_related("cluster").filter(pk=given.id).first()
    # One that the user may not see is, to them, not there.
    if proposal is None or not actor.may(VIEWER, proposal.cluster_id):
        raise NotFound("proposal", given.id)
    return actor.on(proposal.cluster), proposal
