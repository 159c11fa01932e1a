"""Responses with pages and fragments, with the context that all pages share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render

from controlplane.errors import ConfirmationNeeded, Conflict, Forbidden, Invalid, WeirError
from controlplane.health.disks import full_disks
from controlplane.health.liveness.status import site_status
from controlplane.models import Cluster
from dashboard.guards import PageRequest, cluster_action
from dashboard.navigation import navigation

# Codes of conflicts whose message already contains the data.
WITHOUT_DATA = ("stale", "not_allowed", "wrong_seal", "own_proposal")


def render_page(
    request: PageRequest, template: str, context: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    """Render a template with actor and cluster; a whole page has the clusters of the navigation."""
    values = {"actor": request.actor, "cluster": request.cluster} | (context or {})
    if not request.htmx:
        values["full_disks"] = full_disks()
        values["site_status"] = site_status()
        values["navigation"] = navigation(request)
        values["clusters"] = values["navigation"].clusters
    return render(request, f"dashboard/{template}", values, status=status)


def render_list(
    request: PageRequest, page: str, fragment: str, context: dict[str, Any]
) -> HttpResponse:
    """Render the fragment for a live update, the whole page otherwise."""
    return render_page(
        request, fragment if request.htmx and not request.htmx.boosted else page, context
    )


def notify(request: HttpRequest, text: str) -> None:
    """Add a success message to the next page."""
    messages.success(request, text)


def notify_refusal(request: HttpRequest, refusal: WeirError) -> None:
    """Add an error message to the next page."""
    messages.error(request, refusal_text(refusal))


def refusal_text(refusal: WeirError) -> str:
    """Return an error as sentences, with messages of fields or data."""
    if isinstance(refusal, Invalid) and refusal.fields:
        return " ".join(f"{text}." for faults in refusal.fields.values() for text in faults)
    if isinstance(refusal, Conflict) and refusal.data and refusal.code not in WITHOUT_DATA:
        lines = [f"{name.replace('_', ' ')}: {value}" for name, value in refusal.data.items()]
        return f"{refusal}. ({', '.join(lines)})"
    return f"{refusal}."


@contextmanager
def notify_refusals(request: PageRequest) -> Iterator[None]:
    """Add an error in the block to the next page; it raises `Forbidden`, `ConfirmationNeeded`."""
    try:
        yield
    except (Forbidden, ConfirmationNeeded):
        raise
    except WeirError as refusal:
        notify_refusal(request, refusal)


def cluster_change(
    page: str, *keys: str
) -> Callable[[Callable[..., str]], Callable[..., HttpResponseBase]]:
    """Return a decorator of changes of a cluster, which return a message for the next page.

    The view requires a POST and redirects to `page`, whose URL has the slug and the parts `keys` of
    the view's own URL; a form with `back` of the value `fleet` leads to the fleet instead. Errors
    are messages, too; `Forbidden` is raised.
    """

    def decorate(change: Callable[..., str]) -> Callable[..., HttpResponseBase]:
        @cluster_action
        @wraps(change)
        def view(request: PageRequest, cluster: Cluster, **parts: Any) -> HttpResponse:
            with notify_refusals(request):
                notify(request, change(request, cluster, **parts))
            if request.POST.get("back") == "fleet":
                return redirect("fleet")
            return redirect(page, cluster.slug, *(parts[key] for key in keys))

        return view

    return decorate
