"""Limits of failed attempts to authenticate, and their entries in the audit log.

An attempt is counted before the password is hashed, so that parallel attempts share one limit, and
taken back if it succeeds. Three counts lock, each for `COOL_OFF`: of an account from an address, of
all accounts from an address, and of an account from all addresses that it was never used from. So
an attacker who tries the passwords of a known user locks out strangers, not the user.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Final

from django.db import IntegrityError, OperationalError, transaction
from django.db.models import Count, F, Max, Q, QuerySet, Sum
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.client_address import network_of
from controlplane.access.roles import Actor
from controlplane.errors import Busy
from controlplane.models import FailedAttempts, LoginSession

PERIOD: Final = timedelta(minutes=15)
COOL_OFF: Final = timedelta(minutes=15)
# A person who does not remember a password tries a few; many people share an office's address.
MAX_OF_ACCOUNT: Final = 5
MAX_OF_ADDRESS: Final = 30
MAX_OF_STRANGERS: Final = 50
# An address from which a user logged in within this time is not a stranger's.
KNOWN_FOR: Final = timedelta(days=30)
# Entries of first failures in the audit log, per address and altogether in a period; the rest is
# counted and recorded in one entry per address.
MAX_ENTRIES: Final = 5
MAX_ENTRIES_OF_ALL: Final = 500
# Expired tokens that a script keeps sending are recorded once in this time, then as a count.
TOKEN_PERIOD: Final = timedelta(hours=1)

_TRIES: Final = 10
_PASSWORD: Final = FailedAttempts.Kind.PASSWORD
_CODE: Final = FailedAttempts.Kind.CODE
_TOKEN: Final = FailedAttempts.Kind.TOKEN


@dataclass(frozen=True)
class LoginAttempt:
    """An attempt that is counted: `subject` is the account, `network` the client's address.

    `kind`: of a password, or of a code of a second factor. A right password takes back attempts of
    passwords only, so a person who knows it cannot try codes without limit.
    """

    subject: str
    network: str
    is_known: bool
    kind: str = _PASSWORD

    def limits(self) -> list[tuple[str, str, int]]:
        """Return the counts of this attempt: subject, network, the number that locks."""
        counted = [
            (self.subject, self.network, MAX_OF_ACCOUNT),
            ("", self.network, MAX_OF_ADDRESS),
        ]
        return counted if self.is_known else [*counted, (self.subject, "", MAX_OF_STRANGERS)]


def begin(subject: str, address: str | None, kind: str = _PASSWORD) -> LoginAttempt:
    """Count an attempt and return it. Raises `Busy` with the code locked_out, without a write."""
    now = timezone.now()
    known = LoginSession.objects.filter(
        user__username=subject, address=address, started_at__gt=now - KNOWN_FOR
    )
    is_known = address is not None and known.exists()
    attempt = LoginAttempt(subject, network_of(address), is_known, kind)
    _refuse_locked(attempt, now)
    with transaction.atomic():
        for of, network, limit in attempt.limits():
            _count(kind, of, network, limit, now)
    return attempt


@transaction.atomic
def succeed(attempt: LoginAttempt) -> None:
    """Take the attempt back, and forget the failures of this account from this address."""
    of_all = FailedAttempts.objects.filter(kind=attempt.kind)
    of_all.filter(subject=attempt.subject, address=attempt.network).delete()
    for of, network, limit in attempt.limits()[1:]:
        counted = of_all.filter(subject=of, address=network, attempts__gt=0)
        counted.update(attempts=F("attempts") - 1)
        counted.filter(attempts__lt=limit).update(locked_until=None)


@transaction.atomic
def fail(attempt: LoginAttempt, actor: Actor, label: str) -> None:
    """Record a failed attempt: first ones and lock-outs in entries of their own, others counted."""
    of_all = FailedAttempts.objects.filter(kind=attempt.kind)
    row = of_all.filter(subject=attempt.subject, address=attempt.network).first()
    if row is None:
        return
    if row.attempts == MAX_OF_ACCOUNT:
        of_all.filter(pk=row.pk).update(unrecorded=0)
        audit.record(actor, "login.locked", label, after=_locked(attempt.kind, row.attempts))
    elif row.attempts == 1 and _has_room(attempt.kind, attempt.network):
        audit.record(actor, "login.failed", label, after=_step(attempt.kind))
    else:
        of_all.filter(pk=row.pk).update(unrecorded=F("unrecorded") + 1)
    _record_other_locks(attempt, actor)


def record_expired_token(actor: Actor, label: str, subject: str) -> None:
    """Record the use of an expired token: an entry for the first use in an hour, then a count."""
    now = timezone.now()
    key = {"kind": _TOKEN, "subject": subject, "address": network_of(actor.address)}
    try:
        with transaction.atomic():
            row, is_first = FailedAttempts.objects.get_or_create(
                **key, defaults={"since": now, "last_at": now, "attempts": 1}
            )
            if is_first:
                audit.record(actor, "token.expired", label)
            elif now - row.last_at > timedelta(minutes=1):
                # At most a write a minute, so the number is a lower bound.
                FailedAttempts.objects.filter(pk=row.pk).update(
                    last_at=now, attempts=F("attempts") + 1, unrecorded=F("unrecorded") + 1
                )
    except OperationalError:
        # The disk is full or the database locked: the request is refused all the same.
        return


def housekeep(now: datetime, actor: Actor) -> int:
    """Record the counted attempts of ended periods, one entry per address; return deleted rows."""
    deleted = 0
    for kind, period in ((_PASSWORD, PERIOD), (_CODE, PERIOD), (_TOKEN, TOKEN_PERIOD)):
        over = FailedAttempts.objects.filter(kind=kind, since__lt=now - period)
        over = over.exclude(locked_until__gt=now)
        with transaction.atomic():
            _record_counted(kind, over, actor)
            deleted += over.delete()[0]
    return deleted


def _record_counted(kind: str, over: "QuerySet[FailedAttempts]", actor: Actor) -> None:
    action = "token.expired" if kind == _TOKEN else "login.failed"
    rows = over.filter(unrecorded__gt=0).order_by().values("address")
    for row in rows.annotate(attempts=Sum("unrecorded"), subjects=Count("pk")):
        after = {"address": row["address"], "attempts": row["attempts"]}
        after |= {"subjects": row["subjects"], **_step(kind)}
        audit.record(actor, action, "several", after=after)


def _refuse_locked(attempt: LoginAttempt, now: datetime) -> None:
    locked = FailedAttempts.objects.filter(kind=attempt.kind, locked_until__gt=now)
    of_these = (Q(subject=subject, address=network) for subject, network, _ in attempt.limits())
    until = locked.filter(reduce(or_, of_these)).aggregate(until=Max("locked_until"))["until"]
    if until is not None:
        raise _locked_out(until - now)


def _locked_out(left: timedelta) -> Busy:
    after_s = max(1, round(left.total_seconds()))
    text = f"Too many failed attempts: try again in {-(-after_s // 60)} minutes"
    return Busy("locked_out", text, after_s)


def _count(kind: str, subject: str, network: str, limit: int, now: datetime) -> None:
    row = _locked_row(kind, subject, network, now)
    if now - row.since > PERIOD:
        row.since, row.attempts, row.locked_until = now, 0, None
    if row.locked_until is not None:
        # A parallel attempt was the last that the limit allows.
        raise _locked_out(row.locked_until - now)
    row.attempts += 1
    row.last_at = now
    if row.attempts >= limit:
        row.locked_until = now + COOL_OFF
    row.save()


def _locked_row(kind: str, subject: str, network: str, now: datetime) -> FailedAttempts:
    """Return the row of a count, locked until the end of the transaction."""
    key = {"kind": kind, "subject": subject, "address": network}
    rows = FailedAttempts.objects.select_for_update()
    for _ in range(_TRIES):
        # A parallel attempt may create the row and, as it succeeds, delete it again.
        with suppress(IntegrityError):
            return rows.get_or_create(**key, defaults={"since": now, "last_at": now})[0]
    return rows.get_or_create(**key, defaults={"since": now, "last_at": now})[0]


def _has_room(kind: str, network: str) -> bool:
    """Return True if the audit log gets another entry in this period, for this address."""
    rows = FailedAttempts.objects.filter(kind=kind).exclude(subject="").exclude(address="")
    of_address = rows.filter(address=network).count()
    return of_address <= MAX_ENTRIES and rows.count() <= MAX_ENTRIES_OF_ALL


def _record_other_locks(attempt: LoginAttempt, actor: Actor) -> None:
    for of, network, limit in attempt.limits()[1:]:
        rows = FailedAttempts.objects.filter(kind=attempt.kind)
        row = rows.filter(subject=of, address=network).first()
        if row is not None and row.attempts == limit:
            label = "all accounts from this address" if network else f"{of} from new addresses"
            audit.record(actor, "login.locked", label, after=_locked(attempt.kind, limit))


def _locked(kind: str, attempts: int) -> dict[str, int | str]:
    return {"attempts": attempts, "seconds": round(COOL_OFF.total_seconds()), **_step(kind)}


def _step(kind: str) -> dict[str, str]:
    """Return what an entry names besides: nothing for passwords."""
    return {"step": "second factor"} if kind == _CODE else {}
