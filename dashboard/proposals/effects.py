"""Pages of the effects of single actions, and derivation of proposals without some."""

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect

from controlplane.errors import Conflict, Invalid, NotFound
from controlplane.models import Cluster, Proposal
from controlplane.pagination.listing import Filters
from controlplane.pagination.pages import MAX_DIGITS
from controlplane.proposals import derivation
from controlplane.proposals.effects import effects_listing
from controlplane.proposals.listing import proposal_by_id
from dashboard.guards import PageRequest, cluster_action, cluster_page
from dashboard.lists import page_number
from dashboard.plan_names import budget_name
from dashboard.responses import notify, notify_refusal, render_page

PER_PAGE = 50


@cluster_page
def index(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Render a page of the actions with the effect of omitting each."""
    proposal = proposal_by_id(cluster, pk)
    try:
        page = effects_listing(proposal, Filters(page_number(request), PER_PAGE)).page
    except Conflict as none:
        raise NotFound("plan of proposal", pk) from none
    context = {
        "proposal": proposal,
        "page": page,
        "budget": budget_name(proposal.parameters.get("budget", {})),
        "may_drop": proposal.state == Proposal.State.READY and request.actor.is_operator,
    }
    return render_page(request, "_effects_rows.html", context)


@cluster_action
def drop(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponseRedirect:
    """Create a proposal without the chosen actions and redirect to it."""
    sent = request.POST.getlist("place")
    places = [int(text) for text in sent if text.isdecimal() and len(text) <= MAX_DIGITS]
    try:
        derived = derivation.without(request.actor, proposal_by_id(cluster, pk), places)
    except (Invalid, Conflict) as refusal:
        notify_refusal(request, refusal)
        return redirect("proposal", cluster.slug, pk)
    omitted = len(set(places))
    notify(request, f"Proposal {pk} without {omitted} of its actions, with its own fingerprint.")
    return redirect("proposal", cluster.slug, derived.pk)
