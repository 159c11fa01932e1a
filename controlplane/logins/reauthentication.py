"""The password again, before a change of what protects the account."""

from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import User

from controlplane.access import failed_attempts
from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Forbidden, Invalid, LoginNeeded


def person_of(actor: Actor) -> User:
    """Return the user of a session as stored now. Raises `Forbidden` for tokens and components."""
    if actor.token is not None:
        raise LoginNeeded
    if not isinstance(actor.user, User):
        raise Forbidden("login")
    return User.objects.get(pk=actor.user.pk)


def confirm_password(actor: Actor, password: str, field: str = "password") -> User:
    """Return the actor's user if the password is right; it counts as an attempt to log in.

    Raises `Invalid` for `field`, `Busy` after too many attempts, `Conflict` for a user without a
    password, `Forbidden`.
    """
    user = person_of(actor)
    if not user.has_usable_password():
        raise Conflict("no_password", "Your account has no password: it logs in by single sign-on")
    attempt = failed_attempts.begin(user.username, actor.address)
    if not check_password(password, user.password):
        failed_attempts.fail(attempt, actor, f"user {user.username}")
        raise Invalid({field: ["This is not your password"]})
    failed_attempts.succeed(attempt)
    return user


def confirm_if_any(actor: Actor, password: str, field: str = "password") -> User:
    """Return the actor's user; a user who has a password confirms it. Raises as `confirm_password`.

    Users of single sign-on have none: their provider authenticates them.
    """
    user = person_of(actor)
    return confirm_password(actor, password, field) if user.has_usable_password() else user
