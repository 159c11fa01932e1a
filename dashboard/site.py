"""The help page, and the pages of errors."""

import sys
from collections.abc import Callable
from itertools import groupby
from typing import Any, cast

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from controlplane.access.request_ids import request_id
from controlplane.access.roles import OPERATOR, actor_of
from controlplane.errors import DATABASE_AWAY_S, Invalid
from controlplane.health.disks import full_disks
from controlplane.models import Cluster
from dashboard.glossary import FIGURES, WORDS
from dashboard.glossary.tasks import tasks_of
from dashboard.guards import PageRequest, anyone_page
from dashboard.responses import render_page


@anyone_page
def help_page(request: PageRequest) -> HttpResponse:
    """Show tasks of operators, the glossary in alphabetical order, and the keys."""
    words = sorted((*WORDS, *FIGURES), key=lambda term: term.word.lower())
    by_letter = groupby(words, key=lambda term: term.word[0].upper())
    letters = [{"name": letter, "words": list(group)} for letter, group in by_letter]
    clusters, actor = Cluster.objects.order_by("slug"), request.actor
    if actor.clusters is not None:
        clusters = clusters.filter(pk__in=actor.clusters)
    start = clusters.first()
    context = {"words": words, "letters": letters, "start": start}
    context["tasks"] = tasks_of(
        start, may_operate=start is not None and actor.on(start).may(OPERATOR)
    )
    return render_page(request, "help.html", context)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render that nothing has this address; with the navigation for those who may use it."""
    return _refusal(request, "404.html", "not_found.html", exception, status=404)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render that another role is required; with the navigation for those who may use it."""
    return _refusal(request, "403.html", "not_allowed.html", exception, status=403)


def refuse_invalid_values(get_response: Callable[..., Any]) -> Callable[..., Any]:
    """Return the middleware that answers `Invalid` by a 422 with the values that are not valid.

    A form shows its own faults: these are values of the URL, or such that no form sends.
    """

    def respond(request: HttpRequest) -> Any:
        return get_response(request)

    def refuse(request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, Invalid):
            return None
        return _refusal(request, "422.html", "not_valid.html", error, status=422)

    respond.process_exception = refuse  # type: ignore[attr-defined]
    return respond


def _refusal(
    request: HttpRequest, short: str, framed: str, exception: Exception, status: int
) -> HttpResponse:
    """Render a refusal with its reason: an address that leads to no page has none."""
    reason = next(iter(exception.args), "")
    faults = getattr(exception, "fields", {})
    context = {"reason": reason if isinstance(reason, str) else "", "faults": faults}
    page = _framed(request)
    if page is None:
        return render(request, short, context, status=status)
    return render_page(page, framed, context, status=status)


def _framed(request: HttpRequest) -> PageRequest | None:
    """Return the request of a whole page by a viewer of any cluster, None for any other request.

    Its actor and cluster are those of the page that raised the error, if there is one.
    """
    page = cast("PageRequest", request)
    user = getattr(request, "user", None)
    is_page = user is not None and user.is_authenticated and request.accepts("text/html")
    if not is_page or page.htmx:
        return None
    if not hasattr(page, "actor"):
        page.actor, page.statuses = actor_of(request), None
        page.cluster = getattr(request, "cluster", None)
    return page if page.actor.is_member else None


def server_error(request: HttpRequest) -> HttpResponse:
    """Render an internal error without the database; 503 if that is away, or a disk is full."""
    disks, error = full_disks(), sys.exc_info()[1]
    is_away = isinstance(error, OperationalError)
    context = {
        "full_disks": disks, "is_database_away": is_away, "now": timezone.now(),
        "request_id": request_id(request),
    }  # fmt: skip
    response = render(None, "500.html", context, status=503 if disks or is_away else 500)
    if is_away:
        response["Retry-After"] = str(DATABASE_AWAY_S)
    return response
