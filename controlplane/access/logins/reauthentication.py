"""Confirmation that the user is present: by the password, or by single sign-on, once more.

It is kept in the session, and required by changes of what gives access (`require_confirmed`).
"""

import time

from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase

from controlplane.access import audit, failed_attempts
from controlplane.access.roles import CONFIRMED_AT, Actor
from controlplane.errors import Conflict, Forbidden, Invalid, LoginNeeded


def person_of(actor: Actor) -> User:
    """Return the user of a session as stored now. Raises `Forbidden` for tokens and components."""
    if actor.token is not None:
        raise LoginNeeded
    if not isinstance(actor.user, User):
        raise Forbidden("login")
    return User.objects.get(pk=actor.user.pk)


def with_password(actor: Actor) -> User:
    """Return the actor's user. Raises `Conflict` (no_password) if it has none, and `Forbidden`."""
    user = person_of(actor)
    if not user.has_usable_password():
        raise Conflict("no_password", "Your account has no password: it logs in by single sign-on")
    return user


def confirm_password(actor: Actor, password: str, field: str = "password") -> User:
    """Return the actor's user if the password is right; it counts as an attempt to log in.

    Raises `Invalid` for `field`, `Busy` after too many attempts, and as `with_password`.
    """
    user = with_password(actor)
    attempt = failed_attempts.begin(user.username, actor.address)
    if not check_password(password, user.password):
        failed_attempts.fail(attempt, actor, f"user {user.username}")
        raise Invalid({field: ["This is not your password"]})
    failed_attempts.succeed(attempt)
    return user


def record_confirmation(actor: Actor, session: SessionBase) -> None:
    """Let the user of a session change what gives access, for `CONFIRMED_FOR`."""
    session[CONFIRMED_AT] = time.time()
    audit.record(actor, "session.confirm", f"user {actor.name}")
