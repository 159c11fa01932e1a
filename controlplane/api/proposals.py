"""Proposals: requesting, reading, and the verbs of their table, one endpoint each."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status

from controlplane.api.common.examples import verb_examples, with_examples
from controlplane.api.common.lists import about, listed, numbers_of, requested_page
from controlplane.api.common.security import caller, cluster_of, viewed_cluster
from controlplane.api.proposal_schemas import (
    BODIES,
    ActionPage,
    AllowedOut,
    DriftOut,
    PlannerOut,
    ProposalIn,
    ProposalOut,
    ProposalPage,
)
from controlplane.errors import Conflict
from controlplane.executions import verbs
from controlplane.executions.action_status import (
    ActionRow,
    actions_page,
    statuses,
    steps_of,
)
from controlplane.models import Proposal
from controlplane.plans.proposal_states import SAID, Verb
from controlplane.policies.auto_approval import decide_auto_approval
from controlplane.proposals import drift, requests
from controlplane.proposals.listing import (
    ProposalFilters,
    proposal_by_id,
    proposal_without_plan,
    proposals_listing,
)
from controlplane.proposals.requests import offered_planners

router = Router(tags=["proposals"])
PROPOSAL = "/{slug}/proposals/{int:pk}"


@router.get("/{slug}/planners", response=list[PlannerOut])
def list_planners(request: HttpRequest, slug: str) -> Any:
    """Return the connected planners with their algorithms, measures and the cluster's defaults."""
    return offered_planners(viewed_cluster(request))


@router.post("/{slug}/proposals", response={202: ProposalOut})
def request_proposal(request: HttpRequest, slug: str, body: ProposalIn) -> Any:
    """Ask a planner for a plan; it is computing until a worker has it ready."""
    actor, cluster = caller(request), cluster_of(request)
    proposal = requests.request(
        actor, cluster, body.algorithm, body.parameters, planner=body.planner
    )
    return Status(202, proposal)


@router.get("/{slug}/proposals", response=ProposalPage)
def list_proposals(request: HttpRequest, response: HttpResponse, slug: str) -> Any:
    """List proposals, the newest first.

    Query parameters state, planner, cursor, limit (up to 1000).
    """
    cluster, filters = viewed_cluster(request), ProposalFilters.of(request.GET)
    page = requested_page(request, proposals_listing(cluster, filters))
    return listed(request, response, page) | {"proposals": list(page.rows)}


@router.get(PROPOSAL, response=ProposalOut)
def get_proposal(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return one proposal and what the caller may do with it, without its actions."""
    return proposal_without_plan(viewed_cluster(request), pk)


@router.get(f"{PROPOSAL}/allowed", response=AllowedOut)
def get_allowed(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return what the caller may do with a proposal now."""
    actor = caller(request)
    proposal = proposal_without_plan(cluster_of(request), pk)
    ready = proposal.state == Proposal.State.READY
    return {
        "state": proposal.state,
        "verbs": verbs.offered(actor, proposal),
        "request_again": verbs.may_request_again(actor, proposal),
        "auto_approval": decide_auto_approval(proposal) if ready else None,
    }


@router.get(f"{PROPOSAL}/actions", response=ActionPage)
def list_actions(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return one page of the actions in their order; query parameters page, per_page."""
    proposal = proposal_by_id(viewed_cluster(request), pk)
    action_statuses = statuses(proposal, steps_of(proposal))
    page = actions_page(proposal, action_statuses, *numbers_of(request))
    actions = [_action(proposal, row) for row in page.rows]
    return about(page) | {"seal": proposal.seal, "actions": actions}


def _action(proposal: Proposal, row: ActionRow) -> dict[str, Any]:
    imbalance = proposal.imbalance_after
    return {
        **vars(row),
        **vars(row.text),
        **vars(row.status),
        "action": proposal.plan[row.place].action_json(),
        "imbalance": imbalance[row.place] if row.place < len(imbalance) else None,
    }


@router.get(f"{PROPOSAL}/drift", response=DriftOut)
def get_drift(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return how far the cluster is from the snapshot now, against the policy's tolerance."""
    proposal = proposal_by_id(viewed_cluster(request), pk)
    if proposal.snapshot_row is None:
        raise Conflict("no_snapshot", "It has no snapshot yet, so there is nothing to drift from")
    return drift.drift_of(proposal, _done(proposal)).to_json()


def _done(proposal: Proposal) -> int:
    execution = getattr(proposal, "execution", None)
    return execution.done if execution is not None else 0


@router.post(f"{PROPOSAL}/request-again", response={202: ProposalOut})
def request_again(request: HttpRequest, slug: str, pk: int) -> Any:
    """Request the same plan for the cluster as it is now; return the new proposal."""
    actor, proposal = caller(request), proposal_by_id(cluster_of(request), pk)
    return Status(202, requests.request_again(actor, proposal))


def _endpoint(verb: Verb) -> None:
    """Add the endpoint of one verb of the table."""
    shape: Any = BODIES[verb.seal, verb.reason]

    def apply_verb(request: HttpRequest, slug: str, pk: int, body: Any) -> Any:
        actor, proposal = caller(request), proposal_by_id(cluster_of(request), pk)
        given = body.dict() if body is not None else {}
        return verbs.apply_verb(actor, proposal, verb, **given)

    apply_verb.__name__ = f"{verb.name.replace(' ', '_')}_proposal"
    apply_verb.__doc__ = f"{verb.about}. Role: {verb.role}, or what the policy names instead."
    apply_verb.__annotations__["body"] = shape
    if not (verb.seal or verb.reason):
        # No field is required, so the body may be missing.
        apply_verb.__annotations__["body"] = shape | None
        apply_verb.__defaults__ = (None,)
    add = router.post(
        f"{PROPOSAL}/{verb.path}",
        response=ProposalOut,
        summary=verb.name.capitalize(),
        openapi_extra=with_examples(verb_examples(verb.seal, verb.reason)),
    )
    add(apply_verb)


for _verb in SAID:
    _endpoint(_verb)
