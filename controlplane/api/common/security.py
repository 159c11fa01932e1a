"""Authentication: a session (writes need the CSRF token) or `Authorization: Bearer <token>`.

`caller` is the door of every endpoint: where the address names a cluster, it lets in only who may
see that cluster, and what the services ask for later is asked on that cluster.
"""

from dataclasses import replace

from django.http import HttpRequest
from ninja.security import HttpBearer, SessionAuth

from controlplane.access import tokens
from controlplane.access.roles import Actor, actor_of, require_member, require_viewer
from controlplane.clusters.listing import cluster_by_slug
from controlplane.models import ApiToken, Cluster


class TokenAuth(HttpBearer):
    """Accepts the bearer token of an active user."""

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken | None:
        """Return the row of the token, None for one that is unknown, expired or switched off."""
        return tokens.token_of(token)


TOKEN = TokenAuth()
SESSION = SessionAuth()
# The token first: a script sends no cookie, and its requests are no target of forgery.
AUTHENTICATION = [TOKEN, SESSION]


def caller(request: HttpRequest) -> Actor:
    """Return the caller, acting on the cluster in the URL, if there is one.

    Raises `Forbidden` for a caller without access to it, `NotFound` for an unknown cluster.
    """
    # Ninja puts what authenticate returned on the request.
    actor = _actor(request, request.auth)  # type: ignore[attr-defined]
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
    row = TOKEN(request)
    if row is not None:
        return _actor(request, row)
    return actor_of(request) if request.user.is_authenticated else None


def visible_cluster(actor: Actor, slug: str) -> Cluster:
    """Return a cluster that a body names. Raises `Forbidden`, `NotFound`."""
    cluster = cluster_by_slug(slug)
    require_viewer(actor, cluster)
    return cluster


def _actor(request: HttpRequest, known: object) -> Actor:
    """Return the actor of a request, limited to the role and cluster of its token."""
    actor = actor_of(request)
    if not isinstance(known, ApiToken):
        return actor
    return replace(
        actor, user=known.user, ceiling=known.role, only=known.cluster_id, token=known.pk
    )
