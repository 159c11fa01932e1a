"""Bearer tokens: shown once, stored as sha256, limited in role, cluster and time."""

import hashlib
import logging
import secrets
from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth.models import User
from django.db import OperationalError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.access import audit, failed_attempts
from controlplane.access.roles import (
    ADMIN,
    OPERATOR,
    PRODUCER,
    TOKEN_ROLES,
    VIEWER,
    Actor,
    require,
    require_confirmed,
    require_member,
)
from controlplane.access.second_factor_rule import require_factor
from controlplane.access.user_lock import lock_user
from controlplane.errors import Conflict, Fields, Forbidden, Invalid, LoginNeeded
from controlplane.models import ApiToken, Cluster
from controlplane.pagination.lookup import row_by

logger = logging.getLogger(__name__)

PREFIX = "weir_"
# last_used_at shows which tokens are in use; a resolution of a minute saves a write per request.
USE_GRAIN = timedelta(minutes=1)
MAX_NAME: Final = 100
# Forgotten tokens leak, so every token expires.
MAX_DAYS: Final = 366
DEFAULT_DAYS: Final = 90
# Limits scripts that create a token at every start.
MAX_TOKENS: Final = 100


def create(
    user: User,
    name: str,
    expires_at: datetime | None = None,
    *,
    role: str = "",
    cluster: Cluster | None = None,
) -> str:
    """Create a token of a user and return its secret, which is not stored.

    Without `expires_at` the token expires after `DEFAULT_DAYS`.
    """
    expires_at = expires_at or timezone.now() + timedelta(days=DEFAULT_DAYS)
    return _made(user, name, expires_at, role, cluster)[1]


@transaction.atomic
def make(
    actor: Actor,
    name: str,
    role: str = VIEWER,
    cluster: Cluster | None = None,
    days: int = DEFAULT_DAYS,
) -> tuple[ApiToken, str]:
    """Create a token of the actor; return its row and the secret, which is not stored.

    `role`: the highest role of the token; `cluster`: the only cluster that it is valid for. Raises
    as `require_confirmed`, `Invalid` per field, `Conflict` if there are too many or the actor lacks
    a required second factor.
    """
    user = _user(actor)
    require_confirmed(actor)
    require_factor(actor)
    if faults := _faults(actor, name, role, cluster, days):
        raise Invalid(faults)
    lock_user(actor)
    if ApiToken.objects.filter(user=user).count() >= MAX_TOKENS:
        raise Conflict("too_many_tokens", f"At most {MAX_TOKENS} tokens: revoke one first")
    expires_at = timezone.now() + timedelta(days=days)
    row, secret = _made(user, name.strip(), expires_at, role, cluster)
    after = {"role": role, "expires_at": expires_at.isoformat(timespec="seconds")}
    audit.record(actor, "token.create", _label(row), cluster=cluster, after=after)
    return row, secret


@transaction.atomic
def revoke(actor: Actor, pk: int) -> None:
    """Delete a token of the actor; an admin of all clusters deletes those of all users.

    An actor who uses a token can revoke that token only. Raises `Forbidden`, `NotFound`.
    """
    rows = _by_name(ApiToken.objects.all()) if actor.is_admin else tokens_of(actor)
    row = row_by(rows, "token", pk=pk)
    if actor.token not in (None, pk):
        raise LoginNeeded
    before = {"role": row.role, "user": row.user.username}
    audit.record(actor, "token.revoke", _label(row), cluster=row.cluster, before=before)
    row.delete()


@transaction.atomic
def revoke_all(actor: Actor) -> int:
    """Delete all tokens of the actor, who need not have a role; return how many."""
    rows = ApiToken.objects.filter(user__username=actor.name)
    if count := len(rows):
        rows.delete()
        audit.record(actor, "token.revoke_all", f"user {actor.name}", after={"tokens": count})
    return count


def tokens_of(actor: Actor) -> "QuerySet[ApiToken]":
    """Return the actor's own tokens, by name. Raises `Forbidden`."""
    return _by_name(ApiToken.objects.filter(user=_user(actor)))


def tokens_of_user(actor: Actor, name: str) -> "QuerySet[ApiToken]":
    """Return the tokens of the user with a name. Raises `NotFound`, `Forbidden` without admin."""
    require(actor, ADMIN)
    user = row_by(User.objects.all(), "user", username=name)
    return _by_name(ApiToken.objects.filter(user=user))


def _by_name(rows: "QuerySet[ApiToken]") -> "QuerySet[ApiToken]":
    return rows.select_related("cluster", "user").order_by("name", "pk")


def token_of(token: str, address: str | None = None, request: str = "") -> ApiToken | None:
    """Return the row of a valid token of an active user, None for other tokens.

    The use of an expired token is recorded, with the client's address and the request's id.
    """
    now = timezone.now()
    row = ApiToken.objects.select_related("user").filter(digest=_digest(token)).first()
    if row is None:
        return None
    if row.expires_at <= now or not row.user.is_active:
        actor = Actor(row.user, address, request)
        failed_attempts.record_expired_token(actor, _label(row), f"token {row.pk}")
        return None
    if row.last_used_at is None or now - row.last_used_at > USE_GRAIN:
        _record_use(row, now)
    return row


def namespace_of(authorization: object) -> str:
    """Return the beginning of a producer's ids in the log: no other can use up its sequences.

    `authorization`: of a request. A new token of the same user and name has the same namespace; ""
    for all who are not limited to appends.
    """
    if not isinstance(authorization, ApiToken) or authorization.role != PRODUCER:
        return ""
    return _digest(f"{authorization.user_id} {authorization.name}")[:12] + ":"


def user_of_valid(token: str) -> int | None:
    """Return the id of the user of a token that may be used now; nothing is recorded."""
    live = ApiToken.objects.filter(expires_at__gt=timezone.now(), user__is_active=True)
    return live.filter(digest=_digest(token)).values_list("user_id", flat=True).first()


def _record_use(row: ApiToken, now: datetime) -> None:
    try:
        with transaction.atomic():
            ApiToken.objects.filter(pk=row.pk).update(last_used_at=now)
    except OperationalError as error:
        # The disk is full or the database locked: requests that only read still succeed.
        logger.warning("The use of token %s was not stored: %s", row.pk, error)


def _made(
    user: User, name: str, expires_at: datetime, role: str, cluster: Cluster | None
) -> tuple[ApiToken, str]:
    secret = PREFIX + secrets.token_urlsafe(32)
    row = ApiToken.objects.create(
        user=user,
        name=name,
        digest=_digest(secret),
        hint=secret[-4:],
        expires_at=expires_at,
        role=role,
        cluster=cluster,
    )
    return row, secret


def _user(actor: Actor) -> User:
    require_member(actor)
    if not isinstance(actor.user, User):
        raise Forbidden(VIEWER)
    return actor.user


def _faults(actor: Actor, name: str, role: str, cluster: Cluster | None, days: int) -> Fields:
    faults: Fields = {}
    if not 1 <= len(name.strip()) <= MAX_NAME:
        faults["name"] = [f"Enter what the token is for, in at most {MAX_NAME} characters"]
    if role not in TOKEN_ROLES:
        faults["role"] = [f"Must be one of {', '.join(TOKEN_ROLES)}"]
    if role == PRODUCER and (cluster is None or not actor.may(OPERATOR, cluster.pk)):
        faults["cluster"] = ["Choose the cluster of the producer, of which you are an operator"]
    if cluster is not None and not actor.may(VIEWER, cluster.pk):
        faults["cluster"] = [f"There is no cluster {cluster.slug} that you may see"]
    if not 1 <= days <= MAX_DAYS:
        faults["days"] = [f"Must be 1 to {MAX_DAYS}, not {days}"]
    return faults


def _label(row: ApiToken) -> str:
    return f"token {row.name} …{row.hint}"


def _digest(token: str) -> str:
    # A token has 256 random bits, so a fast hash is secure.
    return hashlib.sha256(token.encode()).hexdigest()
