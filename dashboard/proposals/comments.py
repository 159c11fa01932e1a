"""Comments on a proposal, and reasons that are added after an emergency operation."""

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect

from controlplane.errors import Conflict, Invalid
from controlplane.models import Cluster
from controlplane.proposals.comments import MAX_COMMENTS, add_comment, comments_of
from controlplane.proposals.executions import control
from controlplane.proposals.listing import proposal_without_plan
from dashboard.guards import PageRequest, cluster_action, cluster_page
from dashboard.responses import notify, notify_refusals, refusal_text, render_page


@cluster_page
def index(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Return the comments on a proposal."""
    return _comments(request, cluster, pk)


@cluster_action
def add(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Add a comment, and return all of them; a refused one keeps what was typed."""
    text = request.POST.get("text", "")
    try:
        add_comment(request.actor, proposal_without_plan(cluster, pk), text)
    except (Invalid, Conflict) as refusal:
        return _comments(request, cluster, pk, text, refusal_text(refusal), 422)
    if not request.htmx:
        return redirect("proposal", cluster.slug, pk)
    return _comments(request, cluster, pk)


@cluster_action
def add_reason(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponseRedirect:
    """Add the reason of the last emergency operation to the audit log."""
    with notify_refusals(request):
        control.add_reason(
            request.actor, proposal_without_plan(cluster, pk), request.POST.get("reason", "")
        )
        notify(request, "The reason is in the audit log.")
    return redirect("proposal", cluster.slug, pk)


def _comments(
    request: PageRequest,
    cluster: Cluster,
    pk: int,
    typed: str = "",
    fault: str = "",
    status: int = 200,
) -> HttpResponse:
    proposal = proposal_without_plan(cluster, pk)
    context = {
        "proposal": proposal,
        "comments": comments_of(proposal),
        "comments_left": MAX_COMMENTS,
        "typed": typed,
        "comment_fault": fault,
    }
    return render_page(request, "_proposal_comments.html", context, status)
