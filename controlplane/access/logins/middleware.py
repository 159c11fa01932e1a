"""Middleware: sessions end with their row, refusals are recorded, and no cache stores responses."""

from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.logins.login_sessions import KEY, ending_of, record_ending, record_use
from controlplane.access.roles import actor_of
from controlplane.models import ApiToken, LoginSession

Respond = Callable[[HttpRequest], HttpResponse]


def check_login_session(get_response: Respond) -> Respond:
    """Return the middleware that ends a session whose row has ended, is too old or idle."""

    def respond(request: HttpRequest) -> HttpResponse:
        if SESSION_KEY in request.session and not _is_open(request):
            request.session.flush()
            request.user = AnonymousUser()
        return get_response(request)

    return respond


def forbid_storage(get_response: Respond) -> Respond:
    """Return the middleware that forbids browsers and proxies to store a response.

    Static files do not pass here: they are served in front of Django.
    """

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response["Cache-Control"] = "no-store, private"
        return response

    return respond


def record_refusals(get_response: Respond) -> Respond:
    """Return the middleware that records what a user of a session or token may not do (403)."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.status_code == HTTPStatus.FORBIDDEN:
            _record_refusal(request)
        return response

    return respond


def _record_refusal(request: HttpRequest) -> None:
    actor, token = actor_of(request), getattr(request, "auth", None)
    if isinstance(token, ApiToken):
        actor = replace(actor, user=token.user, token=token.pk)
    audit.record_refusal(
        actor,
        f"{request.method} {request.path}",
        cluster=getattr(request, "cluster", None),
        reason=getattr(request, "refusal", ""),
    )


def _is_open(request: HttpRequest) -> bool:
    identity = request.session.get(KEY)
    rows = LoginSession.objects.filter(ended_at=None)
    row = rows.filter(pk=identity).first() if identity else None
    if row is None:
        return False
    now = timezone.now()
    if reason := ending_of(row, now):
        record_ending(row, reason)
        return False
    if _is_by_user(request):
        record_use(row, now)
    return True


def _is_by_user(request: HttpRequest) -> bool:
    """Return True unless an open page made the request automatically (live updates, charts)."""
    if request.method != "GET":
        return True
    if "HX-Request" in request.headers:
        return "HX-Boosted" in request.headers
    return request.headers.get("Sec-Fetch-Dest", "document") == "document"
