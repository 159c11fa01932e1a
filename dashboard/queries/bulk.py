"""Bulk actions of the list of queries: end, restore, cancel, move, and their progress."""

from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from controlplane.errors import Invalid
from controlplane.models import BulkAction, Cluster
from controlplane.numbers import counted
from controlplane.pagination.pages import whole
from controlplane.proposals import requests
from controlplane.topology import bulk_actions
from dashboard.guards import PageRequest, cluster_action, cluster_page
from dashboard.responses import notify_refusals, render_page


def toast_of(action: BulkAction) -> dict[str, Any]:
    """Return what a bulk action did, its progress, and whether it can be undone or cancelled."""
    age = timezone.now() - action.finished_at if action.finished_at is not None else None
    is_recent = age is not None and age < bulk_actions.RESTORE_PERIOD
    is_end = action.kind == BulkAction.Kind.END
    return {
        "action": action,
        "text": _text(action),
        "percent": 100 * action.done // max(1, action.total),
        "may_restore": is_end and is_recent and not action.restorations.exists(),
        "is_running": action.state == BulkAction.State.RUNNING,
    }


def _text(action: BulkAction) -> str:
    done = counted(action.done, "queries")
    if action.kind == BulkAction.Kind.RESTORE:
        failed = f" {action.failed:,} could not be restored." if action.failed else ""
        return f"{done} submitted again, without their former state.{failed}"
    if action.state == BulkAction.State.RUNNING:
        return f"{action.done:,} of {action.total:,} queries end…"
    if action.state == BulkAction.State.CANCELLED:
        return f"Cancelled: {done} of {action.total:,} ended."
    return "The query is ending." if action.done == 1 else f"{action.done:,} queries are ending."


@cluster_action
def end(request: PageRequest, cluster: Cluster) -> HttpResponse | HttpResponseRedirect:
    """End the selected queries, or all that the filter selects."""
    sent, action = request.POST, None
    reason, text = sent.get("reason", ""), sent.get("filter", "")
    with notify_refusals(request):
        if sent.get("scope") == "filter":
            confirmed = whole(sent, "confirmed", 1, 10**9)
            action = bulk_actions.end_matching(request.actor, cluster, text, confirmed, reason)
        else:
            action = bulk_actions.end_named(request.actor, cluster, sent.getlist("names"), reason)
    return _back(cluster, text if "filter" in sent else None, action)


@cluster_action
def restore_named(request: PageRequest, cluster: Cluster) -> HttpResponseRedirect:
    """Restore the selected ended queries."""
    sent, action = request.POST, None
    with notify_refusals(request):
        action = bulk_actions.restore_named(request.actor, cluster, sent.getlist("names"))
    return _back(cluster, sent.get("filter"), action)


@cluster_action
def move(request: PageRequest, cluster: Cluster) -> HttpResponseRedirect:
    """Request a plan that moves the selected queries to a node, and show it."""
    sent, proposal = request.POST, None
    with notify_refusals(request):
        node = whole(sent, "node", 0, 10**6)
        proposal = requests.request_moves(
            request.actor, cluster, sent.getlist("names"), node, sent.get("move_reason", "")
        )
    if proposal is None:
        return _back(cluster, sent.get("filter"), None)
    return redirect("proposal", cluster.slug, proposal.pk)


@cluster_action
def restore(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponseRedirect:
    """Restore the queries that an action has ended."""
    action = None
    with notify_refusals(request):
        action = bulk_actions.restore(request.actor, cluster, pk)
    return _back(cluster, request.POST.get("filter"), action)


@cluster_action
def cancel(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponseRedirect:
    """Cancel a running action."""
    action = None
    with notify_refusals(request):
        action = bulk_actions.cancel(request.actor, cluster, pk)
    return _back(cluster, request.POST.get("filter"), action)


@cluster_page
def show(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Return the toast of an action with its progress."""
    return render_page(request, "_bulk_toast.html", toast_context(cluster, str(pk)))


def toast_context(cluster: Cluster, number: str) -> dict[str, Any]:
    """Return the context of the toast of the action with a number, {} for "".

    Raises `Invalid`, `NotFound`.
    """
    if not number:
        return {}
    if not number.isdecimal() or len(number) > 12:  # noqa: PLR2004 - digits of an id
        raise Invalid({"action": ["Must be the number of a bulk action"]})
    return {"toast": toast_of(bulk_actions.action_by_id(cluster, int(number)))}


def _back(cluster: Cluster, text: str | None, action: BulkAction | None) -> HttpResponseRedirect:
    values = {} if text is None else {"filter": text}
    values |= {} if action is None else {"action": str(action.pk)}
    query = f"?{urlencode(values)}" if values else ""
    return HttpResponseRedirect(f"{reverse('queries', args=[cluster.slug])}{query}")
