"""The page of the own account: change the password, list and end sessions."""

from functools import wraps
from typing import Any, cast

from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from controlplane.access.roles import actor_of
from controlplane.errors import Busy, Invalid, NotFound
from controlplane.logins import login_sessions, passwords
from controlplane.logins.login_sessions import KEY
from dashboard.guards import Anyone, P, Page, PageRequest
from dashboard.responses import notify, notify_refusals, render_page


def own_page(view: Page[P]) -> Anyone[P]:
    """Require a session; no role, as users without one have a password and sessions, too."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        page = cast("PageRequest", request)
        page.actor, page.cluster, page.statuses = actor_of(request), None, None
        try:
            return view(page, *args, **kwargs)
        except NotFound as missing:
            raise Http404(str(missing)) from None

    return cast("Anyone[P]", login_required(guarded))


@own_page
def show(request: PageRequest) -> HttpResponse:
    """Render the account."""
    return _page(request, {})


@require_POST
@own_page
def change_password(request: PageRequest) -> HttpResponse:
    """Change the password; all other sessions of the user end."""
    values = request.POST
    identity = request.session.get(KEY, "")
    with notify_refusals(request):
        try:
            user = passwords.change(
                request.actor,
                identity,
                values.get("current", ""),
                values.get("new", ""),
                values.get("repeated", ""),
            )
        except Invalid as invalid:
            return _page(request, invalid.fields, 422)
        except Busy as locked:
            return _page(request, {"current": [str(locked)]}, 429)
        # A new key, and the hash of the new password: this session goes on.
        update_session_auth_hash(request, user)
        notify(request, "The password is changed. Your other sessions have ended.")
    return redirect("account")


@require_POST
@own_page
def end_session(request: PageRequest, identity: str) -> HttpResponse:
    """End a session of the user."""
    login_sessions.revoke(request.actor, identity)
    notify(request, "The session has ended.")
    return redirect("account")


@require_POST
@own_page
def end_all_sessions(request: PageRequest) -> HttpResponse:
    """End all sessions of the user, this one as well."""
    login_sessions.revoke_all(request.actor)
    logout(request)
    return redirect("login")


def _page(request: PageRequest, errors: dict[str, list[str]], status: int = 200) -> HttpResponse:
    user = request.actor.user
    context: dict[str, Any] = {
        "sessions": login_sessions.sessions_of(request.actor),
        "own": request.session.get(KEY, ""),
        "has_password": isinstance(user, User) and user.has_usable_password(),
        "errors": errors,
    }
    return render_page(request, "account.html", context, status)
