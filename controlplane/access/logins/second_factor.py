"""Second factors: set up, verified, and removed by their users or by administrators.

Codes of authenticator applications: TOTP (RFC 6238) with SHA-1, 6 digits and steps of 30 s.

The secret is derived from random bits of the user's row by Django's key, as the secrets of webhooks
are: a copy of the database alone computes no code.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote, urlencode

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django_otp.oath import TOTP

from controlplane.access import audit, failed_attempts
from controlplane.access.logins import login_sessions
from controlplane.access.logins.reauthentication import person_of, with_password
from controlplane.access.roles import ADMIN, Actor, require, require_confirmed
from controlplane.access.second_factor_rule import has_factor
from controlplane.errors import Conflict, Invalid
from controlplane.models import FailedAttempts, LoginSession, RecoveryCode, SecondFactor
from controlplane.pagination.lookup import row_by

CODES: Final = 10
# Within which a setup is confirmed: until then its secret is shown.
SETUP_TIME: Final = timedelta(minutes=10)
# Letters and digits that look different from each other; 24 of them have 118 bits, so a fast hash
# is secure (NIST SP 800-63B, 5.1.2.2 asks for 112).
_ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz23456789"
_CODE_LENGTH: Final = 24
_GROUP: Final = 4
_WRONG: Final = "This code is not valid: enter the newest one"
AUTHENTICATOR: Final = "authenticator"
RECOVERY_CODE: Final = "recovery code"


@dataclass(frozen=True)
class Setup:
    """What a user enters into an application: the secret in base32, or the otpauth:// address."""

    secret: str
    address: str


@dataclass(frozen=True)
class FactorStatus:
    """A user's second factor: since when, and the number of unused recovery codes."""

    since: datetime | None
    recovery_codes: int


def status_of(user: User) -> FactorStatus:
    """Return the status of the user's second factor; since None without one."""
    row = SecondFactor.objects.filter(user=user.pk, confirmed_at__isnull=False).first()
    count = RecoveryCode.objects.filter(user=user.pk).count()
    return FactorStatus(row.confirmed_at if row else None, count)


def start(actor: Actor) -> str:
    """Start to set up a second factor; return the id of the setup.

    Raises `Conflict` (second_factor_exists; no_password) and as `require_confirmed`.
    """
    require_confirmed(actor)
    return start_setup(with_password(actor))


@transaction.atomic
def start_setup(user: User) -> str:
    """Create a secret that `confirm` activates, instead of an earlier unconfirmed one.

    Return the id of the setup, for the session that started it: another person who knows the
    password does not see the secret. Raises `Conflict` (second_factor_exists).
    """
    if has_factor(user):
        text = "Your account has a second factor already: remove it first"
        raise Conflict("second_factor_exists", text)
    values = {
        "nonce": new_nonce(), "created_at": timezone.now(),
        "confirmed_at": None, "last_step": 0,
    }  # fmt: skip
    return SecondFactor.objects.update_or_create(user=user, defaults=values)[0].nonce


def setup_of(user: User, setup: str) -> Setup | None:
    """Return the started setup with an id, None if there is none, or it is too old."""
    row = _started(SecondFactor.objects.all(), user, setup)
    if row is None:
        return None
    secret = secret_text(row.nonce)
    return Setup(secret, address_of(row.nonce, user.username))


@transaction.atomic
def confirm(
    actor: Actor, user: User, setup: str, code: str, session: str | None = None
) -> Sequence[str]:
    """Activate the started setup with an id by its first code, and return the recovery codes.

    Only their hashes are stored. `session`: the login session that continues; all others of the
    user end. Raises `Invalid` for a wrong code, and `Conflict` (no_setup) without a setup.
    """
    row = _started(SecondFactor.objects.select_for_update(no_key=True), user, setup)
    if row is None:
        raise Conflict("no_setup", "The set-up took too long: start again")
    now = timezone.now()
    step = accepted_step(row.nonce, _normalized(code), row.last_step, now)
    if step is None:
        raise Invalid({"code": [_WRONG]})
    changed = SecondFactor.objects.filter(pk=row.pk, nonce=row.nonce, confirmed_at=None)
    if not changed.update(confirmed_at=now, last_step=step):
        raise Conflict("second_factor_exists", "Your account has a second factor already")
    codes = _new_codes(user)
    others = LoginSession.objects.filter(user=user)
    login_sessions.end(others.exclude(pk=session) if session else others,
                       LoginSession.Ended.REVOKED)  # fmt: skip
    audit.record(actor, "second_factor.set_up", f"user {user.username}")
    return codes


def verify(actor: Actor, user: User, code: str) -> str:
    """Return which factor the code proves: the authenticator, or a recovery code, which is used up.

    The code counts as an attempt within the limits of log-ins. Raises `Invalid`, `Busy`.
    """
    attempt = failed_attempts.begin(user.username, actor.address, FailedAttempts.Kind.CODE)
    factor = _accept(actor, user, _normalized(code))
    if not factor:
        failed_attempts.fail(attempt, actor, f"user {user.username}")
        raise Invalid({"code": [_WRONG]})
    failed_attempts.succeed(attempt)
    return factor


def remove(actor: Actor, code: str) -> User:
    """Remove the actor's second factor, after a code; return the user.

    Raises `Conflict` (no_second_factor), and as `require_confirmed` and `verify`.
    """
    require_confirmed(actor)
    user = person_of(actor)
    if not has_factor(user):
        raise Conflict("no_second_factor", "Your account has no second factor")
    verify(actor, user, code)
    with transaction.atomic():
        _delete(user)
        audit.record(actor, "second_factor.remove", f"user {user.username}")
    return user


@transaction.atomic
def remove_of(actor: Actor, username: str, reason: str = "") -> None:
    """Remove the second factor of a user who lost it; all sessions of the user end.

    Raises `Forbidden` for others than admins of all clusters, `NotFound`, `Conflict`
    (no_second_factor), and as `require_confirmed`.
    """
    require(actor, ADMIN)
    require_confirmed(actor)
    user = row_by(User.objects.all(), "user", username=username)
    if not has_factor(user):
        raise Conflict("no_second_factor", f"User {username} has no second factor")
    _delete(user)
    login_sessions.end(LoginSession.objects.filter(user=user), LoginSession.Ended.REVOKED)
    audit.record(actor, "second_factor.remove", f"user {username}", reason=reason)


def housekeep(now: datetime) -> int:
    """Delete the setups that were not confirmed in time; return how many."""
    old = SecondFactor.objects.filter(confirmed_at=None, created_at__lt=now - SETUP_TIME)
    return old.delete()[0]


def _started(rows: "QuerySet[SecondFactor]", user: User, setup: str) -> SecondFactor | None:
    since = timezone.now() - SETUP_TIME
    unconfirmed = rows.filter(user=user.pk, confirmed_at=None, created_at__gt=since)
    return unconfirmed.filter(nonce=setup).first()


@transaction.atomic
def _accept(actor: Actor, user: User, code: str) -> str:
    """Return the factor that a code proves, "" for a wrong code; each code is accepted once."""
    rows = SecondFactor.objects.select_for_update(no_key=True)
    row = rows.filter(user=user.pk, confirmed_at__isnull=False).first()
    if row is None:
        return ""
    step = accepted_step(row.nonce, code, row.last_step, timezone.now())
    if step is not None:
        row.last_step = step
        row.save(update_fields=["last_step"])
        return AUTHENTICATOR
    used, _ = RecoveryCode.objects.filter(user=user.pk, digest=_digest(code)).delete()
    if not used:
        return ""
    after = {"left": RecoveryCode.objects.filter(user=user.pk).count()}
    audit.record(actor, "second_factor.recovery_code", f"user {user.username}", after=after)
    return RECOVERY_CODE


def _delete(user: User) -> None:
    SecondFactor.objects.filter(user=user.pk).delete()
    RecoveryCode.objects.filter(user=user.pk).delete()


def _new_codes(user: User) -> list[str]:
    """Replace the recovery codes of a user, and return them in groups of four characters."""
    RecoveryCode.objects.filter(user=user.pk).delete()
    codes = ["".join(secrets.choice(_ALPHABET) for _ in range(_CODE_LENGTH)) for _ in range(CODES)]
    RecoveryCode.objects.bulk_create(
        RecoveryCode(user=user, digest=_digest(code)) for code in codes
    )
    groups = range(0, _CODE_LENGTH, _GROUP)
    return ["-".join(code[start : start + _GROUP] for start in groups) for code in codes]


def _normalized(code: str) -> str:
    """Return a code without the blanks and hyphens that people type."""
    return "".join(code[:100].split()).replace("-", "").lower()


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


DIGITS: Final = 6
STEP_S: Final = 30
# Clocks of phones and servers differ: the codes of the steps before and after are accepted.
TOLERANCE: Final = 1
# The length of the key of HMAC-SHA-1 (RFC 4226, section 4: 160 bits are recommended).
_KEY_BYTES: Final = 20
_ISSUER: Final = "Weir"


def new_nonce() -> str:
    """Return 256 random bits from which a secret is derived."""
    return secrets.token_hex(32)


def secret_of(nonce: str) -> bytes:
    """Return the secret of 160 bits."""
    label = f"weir.second-factor.{nonce}".encode()
    return hmac.digest(settings.SECRET_KEY.encode(), label, hashlib.sha256)[:_KEY_BYTES]


def secret_text(nonce: str) -> str:
    """Return the secret in base32, as people enter it into an application."""
    return base64.b32encode(secret_of(nonce)).decode()


def address_of(nonce: str, username: str) -> str:
    """Return the otpauth:// address of the secret, which applications read from a QR code."""
    values = {
        "secret": secret_text(nonce), "issuer": _ISSUER, "algorithm": "SHA1",
        "digits": DIGITS, "period": STEP_S,
    }  # fmt: skip
    return f"otpauth://totp/{quote(f'{_ISSUER}:{username}')}?{urlencode(values)}"


def accepted_step(nonce: str, code: str, after: int, now: datetime) -> int | None:
    """Return the time step that the code is of, None for a wrong code.

    `after`: the newest step that was accepted; a code of it or of earlier steps is refused.
    """
    if not (len(code) == DIGITS and code.isascii() and code.isdecimal()):
        return None
    totp = TOTP(secret_of(nonce), STEP_S, digits=DIGITS)
    totp.time = now.timestamp()
    is_right = totp.verify(int(code), tolerance=TOLERANCE, min_t=after + 1)
    return int(totp.t()) if is_right else None
