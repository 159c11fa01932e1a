"""Change of the own password."""

from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from controlplane.access import failed_attempts
from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Forbidden, Invalid, LoginNeeded
from controlplane.models import LoginSession


def change(actor: Actor, session: str, current: str, new: str, repeated: str) -> User:
    """Change the actor's password, and return the user; all other sessions of it end.

    `session`: the id of the login session that continues. The current password counts as an attempt
    to log in. Raises `Invalid` per field, `Busy` after too many attempts, `Conflict` for a user
    without a password, `Forbidden`.
    """
    if actor.token is not None:
        raise LoginNeeded
    if not isinstance(actor.user, User):
        raise Forbidden("login")
    user = User.objects.get(pk=actor.user.pk)
    if not user.has_usable_password():
        raise Conflict("no_password", "Your account has no password: it logs in by single sign-on")
    attempt = failed_attempts.begin(user.username, actor.address)
    if not check_password(current, user.password):
        failed_attempts.fail(attempt, actor, f"user {user.username}")
        raise Invalid({"current": ["This is not your password"]})
    failed_attempts.succeed(attempt)
    _validate(user, new, repeated)
    user.set_password(new)
    user.changed_by = actor  # type: ignore[attr-defined]
    with transaction.atomic():
        rows = LoginSession.objects.filter(pk=session, user=user)
        rows.update(auth_hash=user.get_session_auth_hash())
        user.save(update_fields=["password"])
    return user


def _validate(user: User, new: str, repeated: str) -> None:
    if new != repeated:
        raise Invalid({"repeated": ["This is not the same password"]})
    try:
        validate_password(new, user)
    except ValidationError as weak:
        raise Invalid({"new": list(weak.messages)}) from None
