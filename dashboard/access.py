"""Pages of the user's tokens."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from controlplane.access import tokens
from controlplane.access.roles import PRODUCER, TOKEN_ROLES, VIEWER
from controlplane.errors import Invalid
from dashboard.dialog_forms import chosen_cluster
from dashboard.forms import whole_number
from dashboard.frame.headlines import SOON
from dashboard.guards import PageRequest, anyone_action, anyone_page
from dashboard.lists import require_known
from dashboard.responses import notify, notify_refusals, render_page


@never_cache
@anyone_page
def list_tokens(request: PageRequest) -> HttpResponse:
    """Render the tokens and the form of a new one; for admins those of a named user, too."""
    require_known(request, {"user"})
    return _page(request, {})


@never_cache
@anyone_action
def make_token(request: PageRequest) -> HttpResponse:
    """Create a token; only this response has its secret."""
    values = request.POST
    with notify_refusals(request):
        try:
            row, secret = tokens.make(
                request.actor,
                values.get("name", ""),
                values.get("role", VIEWER),
                chosen_cluster(request.actor, values, "cluster"),
                # The service rejects 0.
                whole_number(values.get("days", "")) or 0,
            )
        except Invalid as invalid:
            return _page(request, {"errors": invalid.fields, "values": values.dict()}, 422)
        return _page(request, {"made": row, "secret": secret}, 201)
    return redirect("tokens")


@anyone_action
def revoke_token(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Revoke a token."""
    tokens.revoke(request.actor, pk)
    notify(request, "The token was revoked.")
    user = request.POST.get("user", "")
    query = f"?{urlencode({'user': user})}" if user else ""
    return HttpResponseRedirect(f"{reverse('tokens')}{query}")


def _page(request: PageRequest, more: dict[str, Any], status: int = 200) -> HttpResponse:
    user, now = request.GET.get("user", ""), timezone.now()
    rows = tokens.tokens_of_user(request.actor, user) if user else tokens.tokens_of(request.actor)
    context = {
        "tokens": rows,
        "shown_user": user,
        "may_see_all": request.actor.is_admin,
        "roles": TOKEN_ROLES,
        "producer": PRODUCER,
        "values": {"days": tokens.DEFAULT_DAYS, "role": VIEWER},
        "most_days": tokens.MAX_DAYS,
        "now": now,
        "soon": now + SOON,
        "errors": {},
    }
    return render_page(request, "tokens.html", context | more, status)
