"""Explain: a panel beside the page of a cluster, a page of its own, and requests of its plans."""

from django.http import HttpResponse
from django.shortcuts import redirect

from controlplane.access.roles import OPERATOR
from controlplane.clusters.tour import PageKind, note_page
from controlplane.errors import Conflict, Forbidden, WeirError
from controlplane.explain import explain, parse_subject
from controlplane.models import Cluster
from controlplane.proposals import requests
from dashboard.explain.rows import explain_url, explanation_row
from dashboard.guards import PageRequest, cluster_action, cluster_page
from dashboard.lists import require_known
from dashboard.responses import notify, notify_refusal, render_list


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the explanation of the subject in the query string: a panel for htmx, else a page."""
    require_known(request, {"subject", "refresh", "page"})
    subject = parse_subject(request.GET.get("subject", ""))
    note_page(request.actor, cluster, PageKind.EXPLANATION)
    row = explanation_row(cluster, explain(cluster, subject))
    # A page of its own refreshes itself, not the panel.
    context = {"row": row, "is_page": "page" in request.GET}
    return render_list(request, "explain.html", "_explain.html", context)


@cluster_action
def request_plan(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Request a plan that an explanation offers, and show its proposal."""
    if not request.actor.is_operator:
        raise Forbidden(OPERATOR)
    subject = parse_subject(request.POST.get("subject", ""))
    planner, reason = request.POST.get("planner", ""), request.POST.get("reason", "")
    offered = explain(cluster, subject).remedies
    remedy = next((r for r in offered if (r.planner, str(r.reason)) == (planner, reason)), None)
    try:
        if remedy is None:
            text = "The explanation has changed, and no longer offers this plan"
            raise Conflict("not_offered", text)
        proposal = requests.request(
            request.actor, cluster, "", remedy.parameters, planner=remedy.planner
        )
    except WeirError as refusal:
        notify_refusal(request, refusal)
        return redirect(explain_url(cluster, str(subject)))
    notify(request, f"Proposal {proposal.pk} is being computed.")
    return redirect("proposal", cluster.slug, proposal.pk)
