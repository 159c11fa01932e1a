"""Proposals: requesting, reading, and the verbs of their table, one endpoint each."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema, Status
from pydantic import Field

from controlplane.access.roles import APPROVER, VIEWER, Actor, require
from controlplane.api.common.examples import verb_examples, with_examples
from controlplane.api.common.lists import list_parameters, listed
from controlplane.api.common.parameters import EstimateOut
from controlplane.api.common.schemas import (
    ListOut,
    ReasonIn,
    RequestBody,
    below,
    columns_of,
    dataclass_schema,
    fields_of,
    list_of,
    listed_columns_of,
    shown,
)
from controlplane.api.common.security import caller, cluster_of, open_to
from controlplane.errors import Conflict, Invalid
from controlplane.models import Proposal
from controlplane.pagination.listing import PlaceListing
from controlplane.planning.action_text import ActionText
from controlplane.planning.estimates import ShownEstimate
from controlplane.plans.proposal_states import SAID, Verb
from controlplane.policies.auto_approval import PolicyDecision, decide_auto_approval
from controlplane.policies.store import policy_of
from controlplane.processes.isolation.limits import proposal_limits
from controlplane.proposals import drift, requests
from controlplane.proposals.approval_lock import ApprovalLock, lock_of
from controlplane.proposals.drift import Drift
from controlplane.proposals.executions import control
from controlplane.proposals.executions.action_status import (
    ActionRow,
    ActionStatus,
    action_rows,
    statuses,
    steps_of,
)
from controlplane.proposals.executions.progress import waits_of
from controlplane.proposals.listing import (
    COLUMNS,
    ProposalFilters,
    proposal_by_id,
    proposal_without_plan,
    proposals_listing,
)
from controlplane.proposals.queue import QueuedProposal, computing_queue


class ProposalIn(RequestBody):
    """Which planner and algorithm, and its parameters; empty is the planner's default."""

    planner: str = Field("", max_length=30)
    algorithm: str = Field("", max_length=30)
    parameters: dict[str, Any] = Field(default_factory=dict, max_length=100)


class GoalOrPlannerIn(ProposalIn):
    """A goal, for which Weir chooses planner and parameters, or these.

    goal: repair, traffic, even or few_moves.
    """

    goal: str = Field("", max_length=20)


class ReasonedIn(RequestBody):
    """Why it is done; kept in the audit log."""

    reason: str = Field(max_length=2000)


class SealIn(ReasonIn):
    """The seal names exactly the actions in their order, and the snapshot they come from."""

    seal: str = Field(max_length=64)


class SealedReasonIn(ReasonedIn):
    """The seal of the actions that are to be reverted, and why."""

    seal: str = Field(max_length=64)


class ApprovalIn(SealIn):
    """The seal, and how many of the actions the approver expects to be applied.

    applicable: as the last review of the proposal has it; null for any number.
    """

    applicable: int | None = Field(None, ge=0, le=10**9)


# What the body of a verb holds, by whether the table asks for the seal and for a reason.
BODIES: Final[Mapping[tuple[bool, bool], type[Schema]]] = {
    (False, False): ReasonIn,
    (False, True): ReasonedIn,
    (True, False): SealIn,
    (True, True): SealedReasonIn,
}


class VerbOut(Schema):
    """A verb that the caller may apply now: POST it below the proposal's address."""

    verb: str = below("path")
    about: str
    seal: bool
    reason: bool


class AllowedOut(Schema):
    """What the caller may do with a proposal in its state; request_again makes another one.

    auto_approval: the policy's decision on a ready proposal, null for others.
    """

    state: str
    verbs: list[VerbOut]
    request_again: bool
    auto_approval: PolicyDecision | None


_VALUES: Final = dict[str, Any]


class ProposalRow(
    columns_of(  # type: ignore[misc]
        Proposal,
        "progress origin base four_eyes snapshot_version seal error started_at attempts"
        " drifting_since unexplained",
        base=listed_columns_of(Proposal, COLUMNS),
        parameters=_VALUES,
        before=_VALUES,
        after=_VALUES,
        predicted=_VALUES,
        rollback_cost=_VALUES,
        bounds=dict[str, float],
        aims=list[str],
        judgement=_VALUES,
        drift=_VALUES,
        review=_VALUES,
        estimate=dict[str, float],
    )
):
    """A proposal as lists have it.

    before, after: measures by name; bounds: by measure, what no plan undercuts. aims: the measures
    of which the plan must improve one, none for those of its planner; judgement: why it is not
    better than the cluster as it was, with what would help, {} if it is. predicted: what
    executing it takes, and the limits at its computation; rollback_cost: what going back from the
    end takes. review: while it waits, what the actions that can still be applied would do now.
    snapshot: the digest of what it was computed from. estimate: bytes and seconds of the
    computation, as estimated at the request; started_at: null while it waits; attempts: how many
    workers have begun it. drifting_since: since when the cluster differs by more than the policy
    tolerates, null if it does not. unexplained: the emergency operation that still has no reason,
    "" for none. waits: why the computation or the execution waits, such as a process that is
    silent, "" if it does not.
    """

    snapshot: str | None = below("snapshot_row_id")
    waits: str

    # Without reading them.
    resolve_action_count = staticmethod(lambda row: row.predicted.get("actions"))
    resolve_waits = staticmethod(waits_of)


class ProposalOut(ProposalRow):
    """A proposal; allowed: what the caller may do with it now.

    lock: why it cannot be approved while it waits, null if it can.
    """

    allowed: list[VerbOut]
    lock: ApprovalLock | None

    resolve_lock = staticmethod(lock_of)

    @staticmethod
    def resolve_allowed(row: Proposal, context: Mapping[str, Any]) -> list[Verb]:
        """Return the verbs that the state, the policy and the caller's role allow."""
        return control.offered(caller(context["request"]), row)


ProposalPage = list_of("ProposalPage", proposals=ProposalRow)


class ActionOut(fields_of(ActionRow, ActionText, ActionStatus, without="text")):  # type: ignore[misc]
    """An action at its place in the order, from 0.

    kind and action: as in routing versions; title, object, before and after: for people. query,
    stream, task: ids of what changes. bytes: of state that moves, as last measured. imbalance: as
    predicted after it. status: of the execution, in which step; code: why it was skipped.
    """

    model_config = shown("place title object before after bytes status")
    action: dict[str, Any]
    imbalance: float | None


class ActionPage(ListOut):
    """One page of actions in the order in which they are executed."""

    seal: str
    actions: list[ActionOut]


class DriftOut(fields_of(Drift)):  # type: ignore[misc]
    """How far the cluster is from the snapshot; exceeded: what the policy does not tolerate."""

    stale: bool


router = Router(tags=["proposals"])
PROPOSAL = "/{slug}/proposals/{int:pk}"


@router.post("/{slug}/proposals", response={202: ProposalOut})
def request_proposal(request: HttpRequest, slug: str, body: GoalOrPlannerIn) -> Any:
    """Ask a planner for a plan; it is computing until a worker has it ready.

    422 with the code of what is missing if the cluster cannot use the goal or planner now.
    """
    actor, cluster = caller(request), cluster_of(request)
    if body.goal:
        if body.planner or body.algorithm or body.parameters:
            raise Invalid({"goal": ["Enter a goal, or planner, algorithm and parameters"]})
        return Status(202, requests.request_for_goal(actor, cluster, body.goal))
    proposal = requests.request(
        actor, cluster, body.algorithm, body.parameters, planner=body.planner
    )
    return Status(202, proposal)


@router.post("/{slug}/proposals/estimate", response=EstimateOut, auth=open_to(VIEWER))
def estimate_proposal(request: HttpRequest, slug: str, body: ProposalIn) -> Any:
    """Estimate the memory and time of a plan without requesting it; 422 too_expensive beyond."""
    cluster = cluster_of(request)
    need = requests.estimate(cluster, body.planner, body.algorithm, body.parameters)
    return ShownEstimate.of(need, proposal_limits())


@router.get("/{slug}/queue", response=list[dataclass_schema(QueuedProposal)])  # type: ignore[misc]
def list_computing_queue(request: HttpRequest, slug: str) -> Any:
    """Return the cluster's proposals that are computed or wait, in the order of all clusters."""
    return computing_queue(cluster_of(request))


@router.get(
    "/{slug}/proposals", response=ProposalPage, openapi_extra=list_parameters(ProposalFilters)
)
def list_proposals(request: HttpRequest, response: HttpResponse, slug: str) -> Any:
    """List proposals, the newest first.

    Query parameters state, planner, filter (as `state:ready actions>100`), cursor, limit (up to
    1000).
    """
    cluster, filters = cluster_of(request), ProposalFilters.of(request.GET)
    return listed(request, response, proposals_listing(cluster, filters), "proposals")


@router.get(PROPOSAL, response=ProposalOut)
def get_proposal(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return one proposal and what the caller may do with it, without its actions."""
    return proposal_without_plan(cluster_of(request), pk)


@router.get(f"{PROPOSAL}/allowed", response=AllowedOut)
def get_allowed(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return what the caller may do with a proposal now."""
    actor = caller(request)
    proposal = proposal_without_plan(cluster_of(request), pk)
    ready = proposal.state == Proposal.State.READY
    return {
        "state": proposal.state,
        "verbs": control.offered(actor, proposal),
        "request_again": control.may_request_again(actor, proposal),
        "auto_approval": decide_auto_approval(proposal) if ready else None,
    }


@router.get(f"{PROPOSAL}/actions", response=ActionPage, openapi_extra=list_parameters())
def list_actions(request: HttpRequest, response: HttpResponse, slug: str, pk: int) -> Any:
    """List the actions in their order; query parameters cursor, limit (up to 1000)."""
    proposal = proposal_by_id(cluster_of(request), pk)
    action_statuses = statuses(proposal, steps_of(proposal))
    rows = partial(action_rows, proposal, action_statuses)
    listing = PlaceListing(range(len(action_statuses)), rows)
    body = listed(request, response, listing, "actions", partial(_action, proposal))
    return body | {"seal": proposal.seal}


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
    proposal = proposal_by_id(cluster_of(request), pk)
    if proposal.snapshot_row is None:
        raise Conflict("no_snapshot", "It has no snapshot yet, so there is nothing to drift from")
    execution = getattr(proposal, "execution", None)
    return drift.drift_of(proposal, execution.done if execution else 0).to_json()


@router.post(f"{PROPOSAL}/request-again", response={202: ProposalOut})
def request_again(request: HttpRequest, slug: str, pk: int) -> Any:
    """Request the same plan for the cluster as it is now; return the new proposal."""
    actor, proposal = caller(request), proposal_by_id(cluster_of(request), pk)
    return Status(202, requests.request_again(actor, proposal))


def _deciders(actor: Actor, request: HttpRequest) -> None:
    """Admit those who decide on proposals by the cluster's policy."""
    require(actor, policy_of(cluster_of(request)).approvers)


def _endpoint(verb: Verb) -> None:
    """Add the endpoint of one verb of the table."""
    shape: Any = ApprovalIn if verb.effect else BODIES[verb.seal, verb.reason]

    def apply_verb(request: HttpRequest, slug: str, pk: int, body: Any) -> Any:
        actor, proposal = caller(request), proposal_by_id(cluster_of(request), pk)
        return control.apply_verb(actor, proposal, verb, **body.dict())

    apply_verb.__name__ = f"{verb.name.replace(' ', '_')}_proposal"
    apply_verb.__doc__ = f"{verb.about}. Role: {verb.role}, or what the policy names instead."
    apply_verb.__annotations__["body"] = shape
    add = router.post(
        f"{PROPOSAL}/{verb.path}",
        response=ProposalOut,
        auth=open_to(_deciders if verb.role == APPROVER else verb.role),
        summary=verb.name.capitalize(),
        openapi_extra=with_examples(verb_examples(verb.seal, verb.reason)),
    )
    add(apply_verb)


for _verb in SAID:
    _endpoint(_verb)
