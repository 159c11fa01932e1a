"""Bearer tokens of scripts: shown once, kept as sha256."""

import hashlib
import secrets
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from controlplane.models import ApiToken

PREFIX = "weir_"
# last_used_at tells which tokens are in use; to the minute is enough and spares a write a request.
USE_GRAIN = timedelta(minutes=1)


def create(user: User, name: str, expires_at: datetime | None = None) -> str:
    """Save a new token of the user and return it; it cannot be read again."""
    token = PREFIX + secrets.token_urlsafe(32)
    ApiToken.objects.create(user=user, name=name, digest=_digest(token), expires_at=expires_at)
    return token


def user_of(token: str) -> User | None:
    """Return the active user of a token that is known and has not expired."""
    now = timezone.now()
    row = (
        ApiToken.objects.select_related("user")
        .filter(Q(expires_at=None) | Q(expires_at__gt=now), digest=_digest(token))
        .first()
    )
    if row is None or not row.user.is_active:
        return None
    if row.last_used_at is None or now - row.last_used_at > USE_GRAIN:
        ApiToken.objects.filter(pk=row.pk).update(last_used_at=now)
    return row.user


def _digest(token: str) -> str:
    # A token has 256 random bits: a plain fast hash is as good as a slow one here.
    return hashlib.sha256(token.encode()).hexdigest()
