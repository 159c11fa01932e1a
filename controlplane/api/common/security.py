"""Authentication: a session (writes need the CSRF token) or `Authorization: Bearer <token>`.

It is the door of every operation, before its body is read: where the address names a cluster, it
admits only who may see that cluster, and everywhere only the audience of the operation (`open_to`).
What the services check later is checked on that cluster.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from ninja.errors import AuthenticationError, HttpError
from ninja.operation import Operation
from ninja.security import SessionAuth
from ninja.security.http import HttpAuthBase

from controlplane.access import tokens
from controlplane.access.client_address import client_address
from controlplane.access.request_ids import request_id
from controlplane.access.roles import Actor, actor_of
from controlplane.api.common.problems import anonymous
from controlplane.clusters.audiences import Audience, admit
from controlplane.errors import WeirError
from controlplane.models import ApiToken, Cluster


class TokenAuth(HttpAuthBase):
    """Accepts the bearer token of an active user whom the operation admits."""

    openapi_scheme = "bearer"
    audience: Audience

    def __call__(self, request: HttpRequest) -> ApiToken | None:
        """Return the row of the token, None without one. Raises as `token_row` and `admit`."""
        row = token_row(request)
        if row is not None:
            admit(request, _actor(request, row), self.audience)
        return row


class LoginAuth(SessionAuth):
    """Accepts the session of an active user whom the operation admits.

    A write needs the CSRF token; it may be in the body, so the role is checked first.
    """

    audience: Audience

    def __call__(self, request: HttpRequest) -> Any:
        """Return the user, None if anonymous: only a write by a user can be forged."""
        if not request.user.is_authenticated:
            return None
        admit(request, actor_of(request), self.audience)
        return super().__call__(request)


def open_to(audience: Audience) -> list[TokenAuth | LoginAuth]:
    """Return the authentication of operations for an audience: before it, no body is read.

    The token first: a script sends no cookie, and its requests are not a target of forgery.
    """
    token, session = TokenAuth(), LoginAuth()
    token.audience = session.audience = audience
    return [token, session]


def admitted(request: HttpRequest, operation: Operation) -> Actor | None:
    """Return the caller if an operation admits them, None if it will refuse them."""
    try:
        is_known = any(check(request) for check in operation.auth_callbacks)
    except (AuthenticationError, HttpError, WeirError):
        return None
    return caller(request) if is_known else None


def caller(request: HttpRequest) -> Actor:
    """Return the caller, acting on the cluster in the URL, if there is one."""
    return request.actor  # type: ignore[attr-defined, no-any-return]


def cluster_of(request: HttpRequest) -> Cluster:
    """Return the cluster in the URL, which `caller` has authorized."""
    return request.cluster  # type: ignore[attr-defined, no-any-return]


def identified(request: HttpRequest) -> Actor | None:
    """Return the caller of a request outside of operations, None if anonymous.

    For what changes nothing: the CSRF token of a session is not looked at.
    """
    try:
        row = token_row(request)
    except AuthenticationError:
        return None
    return _actor(request, row) if row or request.user.is_authenticated else None


def token_row(request: HttpRequest) -> ApiToken | None:
    """Return the row of the token of a request, None without one; it is read once.

    Raises `AuthenticationError` (401) for a token that is unknown, expired or switched off: a
    session does not replace it, so the CSRF check of sessions does not hide what is wrong.
    """
    known = getattr(request, "auth", None)
    if isinstance(known, ApiToken):
        return known
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer":
        return None
    row = tokens.token_of(token.strip(), client_address(request), request_id(request))
    if row is None:
        raise AuthenticationError
    # As after Ninja's authentication: refusals name the user of the token.
    request.auth = row  # type: ignore[attr-defined]
    return row


def readable_with_token(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return a view of the API's description, for callers with a token or a session.

    A browser without a session is redirected to the login, other clients get 401.
    """

    @wraps(view)
    def readable(request: HttpRequest, *args: Any, **parts: Any) -> HttpResponse:
        if identified(request) is not None:
            return view(request, *args, **parts)
        if "Authorization" not in request.headers and request.accepts("text/html"):
            return redirect_to_login(request.get_full_path())
        return anonymous(request)

    return readable


def _actor(request: HttpRequest, known: object) -> Actor:
    """Return the actor of a request, limited to the role and cluster of its token."""
    actor = actor_of(request)
    if not isinstance(known, ApiToken):
        return actor
    return replace(
        actor, user=known.user, ceiling=known.role, only=known.cluster_id, token=known.pk
    )
