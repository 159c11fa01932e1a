"""Change of the own password."""

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from controlplane.access import tokens
from controlplane.access.logins.reauthentication import confirm_password
from controlplane.access.roles import Actor
from controlplane.errors import Invalid
from controlplane.models import LoginSession


def change(
    actor: Actor, session: str, current: str, new: str, repeated: str, *, with_tokens: bool
) -> tuple[User, int]:
    """Change the actor's password; return the user and the number of revoked tokens.

    All other sessions of the user end. `session`: the id of the login session that continues;
    `with_tokens`: whether tokens are revoked, too. The current password counts as an attempt to
    log in. Raises `Invalid` per field, `Busy` after too many attempts, `Conflict` for a user
    without a password, `Forbidden`.
    """
    user = confirm_password(actor, current, "current")
    _validate(user, new, repeated)
    user.set_password(new)
    user.changed_by = actor  # type: ignore[attr-defined]
    with transaction.atomic():
        rows = LoginSession.objects.filter(pk=session, user=user)
        rows.update(auth_hash=user.get_session_auth_hash())
        user.save(update_fields=["password"])
        revoked = tokens.revoke_all(actor) if with_tokens else 0
    return user, revoked


def _validate(user: User, new: str, repeated: str) -> None:
    if new != repeated:
        raise Invalid({"repeated": ["This is not the same password"]})
    try:
        validate_password(new, user)
    except ValidationError as weak:
        raise Invalid({"new": list(weak.messages)}) from None
