"""Sessions of users: their rows decide whether a request or a socket is authenticated."""

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.contrib.auth.models import User
from django.db import OperationalError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from controlplane.access import audit
from controlplane.access.client_address import client_address
from controlplane.access.logins.changes import announce_access_change
from controlplane.access.logins.reauthentication import person_of
from controlplane.access.roles import ADMIN, Actor, Automatic, require, require_confirmed
from controlplane.errors import Busy
from controlplane.models import LoginSession
from controlplane.pagination.chunks import delete_in_chunks
from controlplane.pagination.lookup import row_by

# The name of the session's id in Django's session.
KEY: Final = "login"
Ended = LoginSession.Ended
# seen_at shows which sessions are in use; a resolution of a minute saves a write per request.
SEEN_GRAIN: Final = timedelta(minutes=1)
# Ended sessions show from where a user logged in (access.failed_attempts.KNOWN_FOR).
KEPT: Final = timedelta(days=30)
MAX_AGENT: Final = 200
# Sessions that a user begins in an hour: each has rows until it is deleted.
MAX_PER_HOUR: Final = 60


def start(request: HttpRequest, user: User, via: str) -> LoginSession:
    """Create the row of the session that `request` begins; the session ends at its greatest age."""
    now = timezone.now()
    row = LoginSession.objects.create(
        user=user,
        via=via,
        auth_hash=user.get_session_auth_hash(),
        address=client_address(request),
        agent=request.headers.get("User-Agent", "")[:MAX_AGENT],
        started_at=now,
        seen_at=now,
    )
    request.session[KEY] = str(row.pk)
    request.session.set_expiry(now + settings.SESSION_MAX_AGE)
    return row


def require_room(user: User) -> None:
    """Raise `Busy` (too_many_sessions) if the user began `MAX_PER_HOUR` sessions in an hour."""
    since = timezone.now() - timedelta(hours=1)
    if LoginSession.objects.filter(user=user, started_at__gt=since).count() >= MAX_PER_HOUR:
        text = f"You have logged in {MAX_PER_HOUR} times in an hour: continue in one session"
        raise Busy("too_many_sessions", text, 600)


def session_of(identity: str | None) -> LoginSession | None:
    """Return the open session with the id, with its user; None if it has ended in any way."""
    if not identity:
        return None
    row = LoginSession.objects.select_related("user").filter(pk=identity, ended_at=None).first()
    if row is None or ending_of(row, timezone.now()) or not row.user.is_active:
        return None
    same_password = constant_time_compare(row.auth_hash, row.user.get_session_auth_hash())
    return row if same_password else None


def ending_of(row: LoginSession, now: datetime) -> str:
    """Return why an open session ends now: its age, or idle for too long; "" if it does not."""
    if now - row.started_at > settings.SESSION_MAX_AGE:
        return Ended.AGE
    return Ended.IDLE if now - row.seen_at > settings.SESSION_IDLE else ""


def record_use(row: LoginSession, now: datetime) -> None:
    """Store that the user has made a request, to the minute."""
    if now - row.seen_at <= SEEN_GRAIN:
        return
    try:
        with transaction.atomic():
            LoginSession.objects.filter(pk=row.pk).update(seen_at=now)
    except OperationalError:
        # The disk is full or the database locked: requests that only read still succeed.
        return


def end(rows: "QuerySet[LoginSession]", reason: str) -> int:
    """End the open ones of these sessions, close their sockets and return how many ended."""
    still = rows.filter(ended_at=None)
    users = set(still.values_list("user_id", flat=True))
    count = still.update(ended_at=timezone.now(), ended_by=reason)
    for user_id in users:
        announce_access_change(user_id)
    return count


def sessions_of(actor: Actor) -> "QuerySet[LoginSession]":
    """Return the open sessions of the actor, newest first. Raises `Forbidden` for a token."""
    return _open_sessions(person_of(actor))


def _open_sessions(user: User) -> "QuerySet[LoginSession]":
    oldest = timezone.now() - settings.SESSION_MAX_AGE
    rows = LoginSession.objects.filter(user=user, ended_at=None, started_at__gt=oldest)
    return rows.filter(seen_at__gt=timezone.now() - settings.SESSION_IDLE)


def revoke(actor: Actor, identity: str) -> LoginSession:
    """End one of the actor's sessions; return it. Raises `NotFound`, and as `require_confirmed`."""
    row = row_by(sessions_of(actor), "session", pk=identity)
    require_confirmed(actor)
    with transaction.atomic():
        end(LoginSession.objects.filter(pk=row.pk), Ended.REVOKED)
        audit.record(actor, "session.end", _label(row))
    return row


def revoke_all(actor: Actor) -> int:
    """End all sessions of the actor, this one as well; return how many.

    Raises as `require_confirmed`.
    """
    require_confirmed(actor)
    return _end_all(actor, person_of(actor), "")


def end_all_of(actor: Actor, username: str, reason: str = "") -> int:
    """End all sessions of a user, as an admin of all clusters; return how many.

    Tokens of the user stay valid. Raises `Forbidden`, `NotFound`.
    """
    require(actor, ADMIN)
    return _end_all(actor, row_by(User.objects.all(), "user", username=username), reason)


@transaction.atomic
def _end_all(actor: Actor, user: User, reason: str) -> int:
    count = end(_open_sessions(user), Ended.REVOKED)
    after = {"sessions": count}
    audit.record(actor, "session.end_all", f"user {user.username}", reason=reason, after=after)
    return count


def end_replaced(user: User) -> None:
    """End the sessions of a user that began with another password, or all if it is inactive."""
    rows = LoginSession.objects.filter(user=user, ended_at=None)
    if user.is_active:
        rows = rows.exclude(auth_hash=user.get_session_auth_hash())
    if rows.exists():
        end(rows, Ended.PASSWORD if user.is_active else Ended.REVOKED)


def housekeep(now: datetime) -> int:
    """End the sessions that are over, and delete those that ended long ago; return how many."""
    still = LoginSession.objects.filter(ended_at=None)
    ended = end(still.filter(started_at__lt=now - settings.SESSION_MAX_AGE), Ended.AGE)
    ended += end(still.filter(seen_at__lt=now - settings.SESSION_IDLE), Ended.IDLE)
    return ended + delete_in_chunks(LoginSession.objects.filter(ended_at__lt=now - KEPT))


def record_ending(row: LoginSession, reason: str) -> None:
    """End a session that is over, with its entry in the audit log."""
    with transaction.atomic():
        if end(LoginSession.objects.filter(pk=row.pk), reason):
            after = {"reason": reason}
            audit.record(Automatic("weir", row.address), "session.expire", _label(row), after=after)


def _label(row: LoginSession) -> str:
    return f"session of {row.user.get_username()} since {row.started_at:%Y-%m-%d %H:%M} UTC"
