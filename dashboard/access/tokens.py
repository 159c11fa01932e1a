"""Pages of the user's tokens: list, creation, revocation."""

from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from controlplane.access import tokens
from controlplane.access.roles import ROLES, VIEWER
from controlplane.clusters.listing import cluster_by_slug
from controlplane.errors import Fields, Forbidden, Invalid, NotFound, WeirError
from controlplane.models import Cluster
from dashboard.guards import PageRequest, anyone_page
from dashboard.responses import notify, notify_refusal, render_page


@anyone_page
def index(request: PageRequest) -> HttpResponse:
    """Render the tokens and the form of a new one."""
    return _page(request, {})


@never_cache
@require_POST
@anyone_page
def make(request: PageRequest) -> HttpResponse:
    """Create a token; only this response has its secret."""
    values = request.POST
    try:
        row, secret = tokens.make(
            request.actor,
            values.get("name", ""),
            values.get("role", VIEWER),
            _cluster(values.get("cluster", "")),
            _days(values.get("days", "")),
        )
    except Invalid as invalid:
        return _page(request, {"errors": invalid.fields, "values": values.dict()}, 422)
    except Forbidden:
        raise
    except WeirError as refusal:
        notify_refusal(request, refusal)
        return redirect("tokens")
    return _page(request, {"made": row, "secret": secret}, 201)


@require_POST
@anyone_page
def revoke(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Revoke a token."""
    tokens.revoke(request.actor, pk)
    notify(request, "The token was revoked.")
    return redirect("tokens")


def _page(request: PageRequest, more: dict[str, Any], status: int = 200) -> HttpResponse:
    errors: Fields = {}
    context = {
        "tokens": tokens.tokens_of(request.actor),
        "roles": ROLES,
        "values": {"days": tokens.DEFAULT_DAYS, "role": VIEWER},
        "most_days": tokens.MAX_DAYS,
        "errors": errors,
    }
    return render_page(request, "tokens.html", context | more, status)


def _cluster(slug: str) -> Cluster | None:
    if not slug:
        return None
    try:
        return cluster_by_slug(slug)
    except NotFound as missing:
        raise Invalid({"cluster": [str(missing)]}) from None


def _days(text: str) -> int:
    """Return the number, 0 if it is invalid, which the service rejects."""
    plain = text.isascii() and text.isdecimal() and len(text) <= len(str(tokens.MAX_DAYS))
    return int(text) if plain else 0


get_index: Any = never_cache(index)
