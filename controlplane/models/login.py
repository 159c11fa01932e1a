"""Logins: sessions of users, failed attempts, expiring passwords, and identities of a provider."""

import uuid

from django.conf import settings
from django.db import models


class LoginSession(models.Model):
    """A session of a user, from log-in to log-out; requests and sockets are valid while it is open.

    `auth_hash`: the hash of the password at the time of the log-in; another password ends the
    session. `seen_at`: the last request by the user, to the minute. `agent`: the browser's name for
    itself. A session has no key here: the key is in the cookie, whose session has the id.
    """

    class Via(models.TextChoices):
        """How the user was authenticated."""

        PASSWORD = "password"  # noqa: S105 - a label
        SSO = "sso"

    class Ended(models.TextChoices):
        """Why a session has ended."""

        LOG_OUT = "log_out"
        IDLE = "idle"
        AGE = "age"
        PASSWORD = "password"  # noqa: S105 - a label
        REVOKED = "revoked"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="login_sessions"
    )
    via = models.CharField(max_length=10, choices=Via, default=Via.PASSWORD)
    auth_hash = models.CharField(max_length=128)
    address = models.GenericIPAddressField(null=True, blank=True)
    agent = models.CharField(max_length=200, blank=True)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=10, choices=Ended, blank=True)

    class Meta:
        ordering = ["-started_at"]
        indexes = [models.Index(fields=["user", "-started_at"], name="session_by_user")]

    def __str__(self) -> str:
        return f"{self.user} since {self.started_at:%Y-%m-%d %H:%M}"


class FailedAttempts(models.Model):
    """Failed attempts to authenticate by one subject from one address, in one period.

    `subject`: the account as it was entered (for `password` and `code`, of a second factor), or the
    label of a token (for `token`); "" counts all accounts from an address. `address`: "" counts an
    account over all addresses that it was never used from. `unrecorded`: attempts that the audit
    log does not have yet.
    """

    class Kind(models.TextChoices):
        """What was tried."""

        PASSWORD = "password"  # noqa: S105 - a label
        CODE = "code"
        TOKEN = "token"  # noqa: S105 - a label

    kind = models.CharField(max_length=10, choices=Kind)
    subject = models.CharField(max_length=150, blank=True)
    address = models.CharField(max_length=45, blank=True)
    since = models.DateTimeField(db_index=True)
    last_at = models.DateTimeField()
    attempts = models.PositiveIntegerField(default=0)
    unrecorded = models.PositiveIntegerField(default=0)
    locked_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "failed attempts"
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject", "address"], name="failed_attempts_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.attempts} by {self.subject or 'all'} from {self.address or 'all'}"


class InitialPassword(models.Model):
    """A password that Weir chose, and that is refused after `expires_at`.

    The row is deleted when the user chooses another password.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="initial_password",
    )
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.user} until {self.expires_at:%Y-%m-%d}"


class SecondFactor(models.Model):
    """An authenticator of a user, which computes codes from a secret and the time (RFC 6238).

    `nonce`: random bits from which the secret is derived by Django's key, so that the row alone
    computes no code. `confirmed_at`: the first right code; null while the user sets it up.
    `last_step`: the newest time step (of 30 s) whose code was accepted; each counts once.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="second_factor",
    )
    nonce = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True, blank=True)
    last_step = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"second factor of {self.user}"


class RecoveryCode(models.Model):
    """A code that replaces a code of the authenticator once; only its sha256 is kept."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recovery_codes"
    )
    digest = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "digest"], name="recovery_code_once")
        ]

    def __str__(self) -> str:
        return f"recovery code of {self.user}"


class ExternalIdentity(models.Model):
    """The user of a subject of an OpenID Connect provider; names may be reused, subjects not."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identities"
    )
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)

    class Meta:
        verbose_name_plural = "external identities"
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="external_identity_once")
        ]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"
