"""Authentication by password, within the limits of failed attempts."""

from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import salted_hmac

from controlplane.access import failed_attempts
from controlplane.access.client_address import client_address
from controlplane.access.logins import login_sessions
from controlplane.access.request_ids import request_id
from controlplane.access.roles import Automatic
from controlplane.errors import Conflict, TryLater, WeirError
from controlplane.models import InitialPassword

MAX_NAME = 150


class PasswordBackend(ModelBackend):
    """Django's backend; a refusal without a look at the password is on the request."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        """Return the user of a name and password, None if they are wrong.

        Raises `PermissionDenied` if the account or the address is locked out, or the password has
        expired; `refusal_of` returns the reason.
        """
        if not username or password is None or not settings.PASSWORD_LOGIN:
            return None
        name = username[:MAX_NAME]
        is_user = User.objects.filter(username=name).exists()
        address = client_address(request) if request is not None else None
        try:
            attempt = failed_attempts.begin(name if is_user else _pseudonym(name), address)
        except TryLater as locked:
            raise _refused(request, locked) from None
        user = super().authenticate(request, username=username, password=password)
        if user is None:
            label = f"user {name}" if is_user else "an unknown user"
            actor = Automatic("anonymous", address, request_id(request) if request else "")
            failed_attempts.fail(attempt, actor, label)
            return None
        failed_attempts.succeed(attempt)
        if InitialPassword.objects.filter(user=user.pk, expires_at__lte=timezone.now()).exists():
            text = "This password has expired: an administrator, or a restart, makes another"
            raise _refused(request, Conflict("password_expired", text))
        try:
            login_sessions.require_room(user)
        except TryLater as full:
            raise _refused(request, full) from None
        return user


def refusal_of(request: HttpRequest) -> WeirError | None:
    """Return why the password of this request was refused, None if it was only wrong."""
    return getattr(request, "login_refusal", None)


def _refused(request: HttpRequest | None, refusal: WeirError) -> PermissionDenied:
    if request is not None:
        request.login_refusal = refusal  # type: ignore[attr-defined]
    return PermissionDenied(str(refusal))


def _pseudonym(name: str) -> str:
    """Return what an unknown name is counted by: people type passwords into the wrong field."""
    return f"?{salted_hmac('weir.unknown-user', name).hexdigest()[:32]}"
