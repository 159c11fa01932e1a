"""Authentication: a session (writes need the CSRF token) or `Authorization: Bearer <token>`.

`caller` is the door of every endpoint: where the address names a cluster, it lets in only who may
see that cluster, and what the services ask for later is asked on that cluster.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from ninja.errors import AuthenticationError
from ninja.security import HttpBearer, SessionAuth

from controlplane.access import tokens
from controlplane.access.client_address import client_address
from controlplane.access.roles import Actor, actor_of, require_member
from controlplane.api.common.problems import anonymous
from controlplane.clusters.listing import visible_cluster
from controlplane.models import ApiToken, Cluster
from controlplane.request_ids import request_id


class TokenAuth(HttpBearer):
    """Accepts the bearer token of an active user."""

    def __call__(self, request: HttpRequest) -> ApiToken | None:
        """Return the row of the token, None without one.

        Raises `AuthenticationError` (401) for a token that is unknown, expired or switched off: a
        session does not replace it, so the CSRF check of sessions does not hide what is wrong.
        """
        kind, _, token = request.headers.get(self.header, "").partition(" ")
        if kind.lower() != self.openapi_scheme:
            return None
        row = self.authenticate(request, token.strip())
        if row is None:
            raise AuthenticationError
        return row

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken | None:
        """Return the row of the token, None for one that is unknown, expired or switched off."""
        return tokens.token_of(token, client_address(request), request_id(request))


class LoginAuth(SessionAuth):
    """Accepts the session of an active user; a write needs the CSRF token."""

    def __call__(self, request: HttpRequest) -> Any:
        """Return the user, None if anonymous: only a write by a user can be forged."""
        return super().__call__(request) if request.user.is_authenticated else None


TOKEN = TokenAuth()
SESSION = LoginAuth()
# The token first: a script sends no cookie, and its requests are no target of forgery.
AUTHENTICATION = [TOKEN, SESSION]


def caller(request: HttpRequest) -> Actor:
    """Return the caller, acting on the cluster in the URL, if there is one.

    Raises `NotFound` for an unknown cluster and for one that the caller may not view, and
    `Forbidden` for a caller without any role, if the URL names no cluster.
    """
    # Ninja puts what authenticate returned on the request.
    return _admitted(request, _actor(request, request.auth))  # type: ignore[attr-defined]


def producer_of(request: HttpRequest) -> Actor:
    """Return the caller of what producers may call, as `caller` does for everything else."""
    actor = _actor(request, request.auth)  # type: ignore[attr-defined]
    return _admitted(request, actor.as_producer())


def _admitted(request: HttpRequest, actor: Actor) -> Actor:
    named = request.resolver_match.kwargs.get("slug") if request.resolver_match else None
    if named is None:
        require_member(actor)
        return actor
    cluster = request.cluster = visible_cluster(actor, named)  # type: ignore[attr-defined]
    return actor.on(cluster)


def cluster_of(request: HttpRequest) -> Cluster:
    """Return the cluster in the URL, which `caller` has authorized."""
    return request.cluster  # type: ignore[attr-defined, no-any-return]


def viewed_cluster(request: HttpRequest) -> Cluster:
    """Return the cluster in the URL for a caller who may see it. Raises as `caller`."""
    caller(request)
    return cluster_of(request)


def identified(request: HttpRequest) -> Actor | None:
    """Return the caller of a request before Ninja's authentication, None if anonymous.

    For what changes nothing: the CSRF token of a session is not looked at.
    """
    try:
        row = TOKEN(request)
    except AuthenticationError:
        return None
    if row is not None:
        # As after Ninja's authentication: refusals name the user of the token.
        request.auth = row  # type: ignore[attr-defined]
        return _actor(request, row)
    return actor_of(request) if request.user.is_authenticated else None


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
