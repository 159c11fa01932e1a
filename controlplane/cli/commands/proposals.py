"""weir proposals."""

from argparse import Namespace

from controlplane.access.roles import VIEWER, Actor, require_member
from controlplane.cli.actors import actor_of, viewed
from controlplane.cli.codes import Code, Refused
from controlplane.cli.output import (
    print_json,
    print_page_as_json,
    print_page_number,
    print_sentence,
    print_table,
)
from controlplane.cli.proposal_rows import print_proposal, proposal_row
from controlplane.errors import NotFound
from controlplane.executions import verbs
from controlplane.models import Proposal
from controlplane.proposals.listing import STATES, ProposalFilters, proposals_page


def listed(given: Namespace) -> None:
    """Print one page of a cluster's proposals."""
    _, cluster = viewed(given)
    if given.state and given.state not in STATES:
        raise Refused(Code.WRONG, f"--state {given.state}: must be one of {', '.join(STATES)}")
    values = {"state": given.state, "page": given.page, "per_page": given.per_page}
    page = proposals_page(cluster, ProposalFilters.of(values))
    rows = [
        {
            "id": row.pk,
            "planner": row.planner,
            "algorithm": row.algorithm,
            "state": row.state,
            "actions": row.predicted.get("actions"),
            "requested_by": row.requested_by,
            "requested_at": row.requested_at,
            "seal": row.seal or None,
        }
        for row in page.rows
    ]
    if given.json:
        print_page_as_json(page, "proposals", rows)
        return
    columns = {"id": "number", "planner": "text", "algorithm": "text", "state": "text",
               "actions": "number", "asked by": "text", "at (UTC)": "text"}  # fmt: skip
    told_rows = [
        [r["id"], r["planner"], r["algorithm"], r["state"], r["actions"], r["requested_by"],
         f"{r['requested_at']:%m-%d %H:%M}"]
        for r in rows
    ]  # fmt: skip
    print_table(columns, told_rows, "no proposal: weir plan asks for one")
    print_page_number(page, "proposals")


def shown(given: Namespace) -> None:
    """Print one proposal."""
    actor, proposal = _proposal(given)
    if given.json:
        print_json(proposal_row(actor, proposal))
    else:
        print_proposal(actor, proposal, given.actions)


def said(given: Namespace) -> None:
    """Apply a verb to a proposal."""
    actor, proposal = _proposal(given)
    verb = verbs.verb_at(given.verb)
    proposal = verbs.apply_verb(actor, proposal, verb, seal=given.seal, reason=given.reason)
    if given.json:
        print_json(proposal_row(actor, proposal))
    else:
        print_sentence(f"proposal {proposal.pk} is {proposal.state}")


def _proposal(given: Namespace) -> tuple[Actor, Proposal]:
    actor = actor_of(given)
    require_member(actor)
    proposal = Proposal.objects.select_related("cluster").filter(pk=given.id).first()
    # One that the user may not see is, to them, not there.
    if proposal is None or not actor.may(VIEWER, proposal.cluster_id):
        raise NotFound("proposal", given.id)
    return actor.on(proposal.cluster), proposal
