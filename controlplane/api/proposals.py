"""Proposals: requesting, reading and deciding them."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from controlplane.api.proposal_schemas import ApplyIn, ProposalIn, ProposalOut, ProposalPage
from controlplane.api.schemas import ReasonIn
from controlplane.api.security import caller
from controlplane.selectors.clusters import cluster_by_slug
from controlplane.selectors.proposals import ProposalFilters, proposal_by_id, proposals_page
from controlplane.services import proposals

router = Router(tags=["proposals"])


@router.post("/{slug}/proposals", response={202: ProposalOut})
def request_proposal(request: HttpRequest, slug: str, body: ProposalIn) -> Any:
    """Ask a planner for a plan; it is computing until a worker has it ready."""
    actor, cluster = caller(request), cluster_by_slug(slug)
    return Status(202, proposals.request(actor, cluster, body.algorithm, body.parameters))


@router.get("/{slug}/proposals", response=ProposalPage)
def list_proposals(request: HttpRequest, slug: str) -> Any:
    """Return one page; query parameters state, page, per_page (up to 1000)."""
    caller(request)
    page = proposals_page(cluster_by_slug(slug), ProposalFilters.of(request.GET))
    return {
        "total": page.total,
        "page": page.number,
        "pages": page.pages,
        "proposals": list(page.rows),
    }


@router.get("/{slug}/proposals/{int:pk}", response=ProposalOut)
def get_proposal(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return one proposal with its moves."""
    caller(request)
    return proposal_by_id(cluster_by_slug(slug), pk)


@router.post("/{slug}/proposals/{int:pk}/apply", response=ProposalOut)
def apply_proposal(request: HttpRequest, slug: str, pk: int, body: ApplyIn) -> Any:
    """Carry out exactly the sealed moves, with their state, or refuse and say what drifted."""
    actor, proposal = caller(request), proposal_by_id(cluster_by_slug(slug), pk)
    return proposals.approve(actor, proposal, body.seal)


@router.post("/{slug}/proposals/{int:pk}/reject", response=ProposalOut)
def reject_proposal(request: HttpRequest, slug: str, pk: int, body: ReasonIn) -> Any:
    """Reject a ready proposal."""
    actor, proposal = caller(request), proposal_by_id(cluster_by_slug(slug), pk)
    return proposals.reject(actor, proposal, body.reason)


@router.post("/{slug}/proposals/{int:pk}/cancel", response=ProposalOut)
def cancel_proposal(request: HttpRequest, slug: str, pk: int) -> Any:
    """Stop computing a proposal."""
    actor, proposal = caller(request), proposal_by_id(cluster_by_slug(slug), pk)
    return proposals.cancel(actor, proposal)
