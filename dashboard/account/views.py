"""The page of the own account: password, second factor, sessions."""

import uuid
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from controlplane.access.logins import login_sessions, passwords, second_factor
from controlplane.access.logins.login_sessions import KEY
from controlplane.access.roles import actor_of
from controlplane.access.second_factor_rule import is_required
from controlplane.errors import Busy, Fields, Invalid, NotFound
from controlplane.models import ApiToken
from dashboard.guards import Anyone, P, Page, PageRequest
from dashboard.responses import notify, notify_refusals, render_page

T = TypeVar("T")


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
    return account_page(request, {})


@require_POST
@own_page
def change_password(request: PageRequest) -> HttpResponse:
    """Change the password; all other sessions of the user end."""
    values = request.POST
    identity = request.session.get(KEY, "")
    with notify_refusals(request):
        changed, faults, status = faults_of(
            lambda: passwords.change(
                request.actor,
                identity,
                values.get("current", ""),
                values.get("new", ""),
                values.get("repeated", ""),
                with_tokens=bool(values.get("with_tokens")),
            ),
            "current",
        )
        if changed is None:
            return account_page(request, {"errors": faults, "values": values}, status)
        # A new key, and the hash of the new password: this session goes on.
        update_session_auth_hash(request, changed[0])
        revoked = f" {changed[1]} tokens are revoked." if changed[1] else ""
        notify(request, f"The password is changed. Your other sessions have ended.{revoked}")
    return redirect("account")


@require_POST
@own_page
def end_session(request: PageRequest) -> HttpResponse:
    """End a session of the user."""
    with notify_refusals(request):
        given = request.POST.get("session", "")
        try:
            identity = uuid.UUID(given)
        except ValueError:
            raise NotFound("session", given[:40]) from None
        login_sessions.revoke(request.actor, str(identity))
        notify(request, "The session has ended.")
    return redirect("account")


@require_POST
@own_page
def end_all_sessions(request: PageRequest) -> HttpResponse:
    """End all sessions of the user, this one as well."""
    login_sessions.revoke_all(request.actor)
    logout(request)
    return redirect("login")


def faults_of(service: Callable[[], T], field: str) -> tuple[T | None, Fields, int]:
    """Return what a service returns; or None, its messages per field and the status of the page.

    After too many attempts the message is of `field`. Other errors are raised.
    """
    try:
        return service(), {}, 200
    except Invalid as invalid:
        return None, invalid.fields, 422
    except Busy as locked:
        return None, {field: [str(locked)]}, 429


def account_page(request: PageRequest, more: dict[str, Any], status: int = 200) -> HttpResponse:
    """Render the account, with more values of the template: errors, factor_errors, values."""
    user = request.actor.user
    has_password = isinstance(user, User) and user.has_usable_password()
    context: dict[str, Any] = {
        "sessions": login_sessions.sessions_of(request.actor),
        "own": request.session.get(KEY, ""),
        "has_password": has_password,
        "factor": second_factor.status_of(user) if isinstance(user, User) else None,
        "is_factor_required": is_required(),
        "tokens": ApiToken.objects.filter(user=request.user.pk).count(),
        "errors": {},
    }
    return render_page(request, "account.html", context | more, status)
