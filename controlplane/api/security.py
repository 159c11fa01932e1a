"""Who calls: a session (writes need the CSRF token) or `Authorization: Bearer <token>`."""

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.security import HttpBearer, SessionAuth

from controlplane.services import tokens
from controlplane.services.access import Actor, require_viewer


class TokenAuth(HttpBearer):
    """Accepts the bearer token of an active user."""

    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        """Return the token's user, None for a token that is unknown, expired or switched off."""
        return tokens.user_of(token)


# The token first: a script sends no cookie, and its requests are no target of forgery.
AUTHENTICATION = [TokenAuth(), SessionAuth()]


def caller(request: HttpRequest) -> Actor:
    """Return who calls; raises `Forbidden` for a user without any role."""
    # Ninja puts what authenticate returned on the request.
    user = request.auth  # type: ignore[attr-defined]
    actor = Actor(user, request.META.get("REMOTE_ADDR") or None)
    require_viewer(actor)
    return actor
