"""Proposals: the list, requests for plans, and the verbs of a proposal."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect

from algorithms.planner import Algorithm
from controlplane.access.roles import require_operator
from controlplane.errors import Busy, Fields, Invalid
from controlplane.lists.kinds import KINDS
from controlplane.models import Cluster, Proposal
from controlplane.pagination.listing import Listing
from controlplane.pagination.pages import Page, optional_whole
from controlplane.planning.adapter import PlannerAdapter
from controlplane.planning.adapters import adapters, missing_for
from controlplane.planning.estimates import ShownEstimate
from controlplane.policies.store import policy_of
from controlplane.processes.isolation.limits import proposal_limits
from controlplane.proposals import requests
from controlplane.proposals.executions import control
from controlplane.proposals.listing import (
    ProposalFilters,
    Repeats,
    proposal_by_id,
    proposals_listing,
    without_repeats,
)
from controlplane.proposals.queue import computing_queue
from dashboard.forms import form_fields, number, parameters
from dashboard.guards import PageRequest, cluster_action, cluster_page
from dashboard.lists.page import filter_bar, list_page, render_list_page
from dashboard.proposals.list_rows import GOALS, list_headline, list_row
from dashboard.responses import notify, notify_refusal, notify_refusals, render_page


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render a page of proposals and the form of a request."""
    repeats: dict[int, Repeats] = {}

    def folded(listing: Listing[Proposal, Proposal]) -> Listing[Proposal, Proposal]:
        listing, hidden = without_repeats(listing)
        repeats.update(hidden)
        return listing

    change = None if request.GET.get("fold") == "no" else folded
    others = "algorithm", "fold"
    shown = list_page(request, KINDS["proposals"], others=others, change=change)
    context = _list(cluster, shown.page, repeats)
    if not request.htmx or request.htmx.boosted:
        context |= _form(cluster, request.GET.dict(), {}, {})
    return render_list_page(request, "proposals.html", "_proposals_table.html", shown, context)


@cluster_page
def form(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return the fields of the chosen planner and algorithm."""
    fields = _form(cluster, request.GET.dict(), {}, {})
    return render_page(request, "_proposal_form.html", fields)


@cluster_action
def ask(request: PageRequest, cluster: Cluster) -> HttpResponse | HttpResponseRedirect:
    """Request a plan."""
    require_operator(request.actor, cluster)
    sent = request.POST.dict()
    if sent.get("goal"):
        return _ask_for_goal(request, cluster, sent["goal"], sent.get("slack", ""))
    planner, name = sent.get("planner", ""), sent.get("algorithm", "")
    try:
        # The service rejects unknown names.
        adapter = _adapter(planner)
        given = parameters(adapter.fields(_algorithm(adapter, name), cluster), sent)
        proposal = requests.request(request.actor, cluster, name, given, planner=planner)
    except Invalid as invalid:
        fields = _form(cluster, sent, sent, invalid.fields)
        return _with_faults(request, cluster, fields)
    except Busy as busy:
        notify_refusal(request, busy)
        return redirect("proposals", cluster.slug)
    return redirect("proposal", cluster.slug, proposal.pk)


def _with_faults(request: PageRequest, cluster: Cluster, fields: dict[str, Any]) -> HttpResponse:
    """Render the list below the form with its faults."""
    page = proposals_listing(cluster, ProposalFilters()).page
    values = {"page": page, "bar": filter_bar(KINDS["proposals"], "")}
    return render_page(request, "proposals.html", values | _list(cluster, page) | fields, 422)


def _ask_for_goal(
    request: PageRequest, cluster: Cluster, goal: str, slack: str
) -> HttpResponse | HttpResponseRedirect:
    try:
        most = number(slack) if slack else None
        proposal = requests.request_for_goal(request.actor, cluster, goal, most)
    except (Invalid, Busy) as refusal:
        notify_refusal(request, refusal)
        return redirect("proposals", cluster.slug)
    return redirect("proposal", cluster.slug, proposal.pk)


@cluster_action
def apply_verb(request: PageRequest, cluster: Cluster, pk: int, verb: str) -> HttpResponseRedirect:
    """Apply a verb that the proposal's state allows; the form names seal and reason."""
    chosen = control.verb_at(verb)
    proposal = proposal_by_id(cluster, pk)
    seal, reason = (request.POST.get(name, "") for name in ("seal", "reason"))
    with notify_refusals(request):
        applicable = optional_whole(request.POST, "applicable") if chosen.effect else None
        control.apply_verb(
            request.actor, proposal, chosen, seal=seal, reason=reason, applicable=applicable
        )
        notify(request, chosen.done)
    return redirect("proposal", cluster.slug, pk)


@cluster_action
def request_again(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponseRedirect:
    """Request the same plan for the cluster as it is now."""
    proposal = proposal_by_id(cluster, pk)
    with notify_refusals(request):
        better = request.POST.get("better") == "yes"
        proposal = requests.request_again(request.actor, proposal, better=better)
    return redirect("proposal", cluster.slug, proposal.pk)


def _list(
    cluster: Cluster, page: Page[Proposal], repeats: Mapping[int, Repeats] | None = None
) -> dict[str, Any]:
    policy, known = policy_of(cluster), repeats or {}
    return {
        "rows": [
            list_row(proposal, policy) | {"repeats": known.get(proposal.pk)}
            for proposal in page.rows
        ],
        "folded": sum(row.count - 1 for row in known.values()),
        "queue": computing_queue(cluster),
        "headline": list_headline(cluster),
    }


def _form(
    cluster: Cluster, sent: Mapping[str, str], values: dict[str, str], errors: Fields
) -> dict[str, Any]:
    """Return the form of the chosen or default planner and algorithm."""
    adapter = _adapter(sent.get("planner", ""))
    chosen = _algorithm(adapter, sent.get("algorithm", ""))
    goals = requests.missing_of_goals(cluster)
    return {
        "goals": [(goal, *GOALS[goal], missing) for goal, missing in goals.items()],
        "first_goal": next((goal for goal, lacks in goals.items() if lacks is None), None),
        "missing": missing_for(cluster, adapter, chosen.name),
        # The form of a planner is requested by its own fields, so its values are chosen.
        "own": bool({"planner", "algorithm"} & sent.keys()),
        "has_faults": bool(errors),
        "planners": [(known, missing_for(cluster, known)) for known in adapters().values()],
        "planner": adapter,
        "algorithms": adapter.algorithms,
        "chosen": chosen,
        "fields": form_fields(adapter.fields(chosen, cluster), values, errors),
        "estimate": _estimate(cluster, adapter, chosen),
        "general_faults": [*errors.get("algorithm", []), *errors.get("planner", [])],
    }


def _estimate(cluster: Cluster, adapter: PlannerAdapter, chosen: Algorithm) -> ShownEstimate | None:
    """Return the estimate of a plan with the default parameters."""
    try:
        need = requests.estimate(cluster, adapter.name, chosen.name, {})
    except Invalid:
        return None
    return ShownEstimate.of(need, proposal_limits())


def _adapter(planner: str) -> PlannerAdapter:
    """Return the adapter of the named planner, the first one for an unknown name."""
    known = adapters()
    return known.get(planner) or known[requests.default_planner()]


def _algorithm(adapter: PlannerAdapter, name: str) -> Algorithm:
    """Return the named algorithm, the best known one for an unknown name."""
    offered = adapter.algorithms
    return next((algorithm for algorithm in offered if algorithm.name == name), offered[0])
