"""Limits of passwords: by account and address, with entries in the audit log that do not flood."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.utils import timezone

from controlplane.access import failed_attempts
from controlplane.access.client_address import network_of
from controlplane.access.roles import Automatic
from controlplane.background.retention.history import prune_sessions
from controlplane.errors import Busy
from controlplane.models import AuditEntry, FailedAttempts

pytestmark = [pytest.mark.django_db, pytest.mark.nightly("access")]
RIGHT = "a long enough password"
ATTACKER, HOME = "198.51.100.7", "192.0.2.1"


@pytest.fixture
def user(db: None) -> User:
    return User.objects.create_user("alice", password=RIGHT)


def log_in(password: str, address: str = ATTACKER, name: str = "alice") -> int:
    """Return the status of a log-in: 302 if it succeeds."""
    form = {"username": name, "password": password}
    return Client().post("/login/", form, REMOTE_ADDR=address).status_code


def later(monkeypatch: pytest.MonkeyPatch, delta: timedelta) -> None:
    """Let time pass for the limits."""
    now = timezone.now() + delta
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)


def entries(action: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(action=action).order_by("pk"))


def test_the_right_password_is_refused_after_many_wrong_ones(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cool-off ends the lock."""
    statuses = [log_in("wrong") for _ in range(12)]
    assert statuses.count(200) == failed_attempts.MAX_OF_ACCOUNT
    assert set(statuses[failed_attempts.MAX_OF_ACCOUNT :]) == {429}
    assert log_in(RIGHT) == 429
    later(monkeypatch, failed_attempts.COOL_OFF + timedelta(seconds=1))
    assert log_in(RIGHT) == 302


def test_the_user_is_not_locked_out_by_others(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by an address, and not by all of them together, as the user's own address is known."""
    monkeypatch.setattr(failed_attempts, "MAX_OF_STRANGERS", 8)
    assert log_in(RIGHT, HOME) == 302
    for number in range(failed_attempts.MAX_OF_STRANGERS):
        log_in("wrong", f"203.0.113.{number}")
    assert log_in(RIGHT, "203.0.113.200") == 429
    assert log_in(RIGHT, HOME) == 302


def test_an_address_is_limited_over_all_accounts(user: User) -> None:
    """Also for accounts that do not exist, which look alike."""
    statuses = [log_in("wrong", name=f"user{i}") for i in range(failed_attempts.MAX_OF_ADDRESS + 1)]
    assert statuses[-1] == 429
    assert log_in(RIGHT) == 429
    assert log_in(RIGHT, HOME) == 302


def test_success_forgets_the_failures(user: User) -> None:
    for _ in range(3):
        assert [log_in("wrong") for _ in range(4)] == [200] * 4
        assert log_in(RIGHT) == 302


def test_the_audit_log_has_logins_failures_and_lock_outs(user: User) -> None:
    for _ in range(7):
        log_in("wrong")
    log_in(RIGHT, HOME)
    (failed,), (locked,) = entries("login.failed"), entries("login.locked")
    (passed,) = entries("login")
    assert failed.object == locked.object == passed.object == "user alice"
    assert (failed.address, locked.address, passed.address) == (ATTACKER, ATTACKER, HOME)
    assert locked.after["attempts"] == failed_attempts.MAX_OF_ACCOUNT


def test_failures_cannot_flood_the_audit_log(user: User) -> None:
    """One entry has what an address tried, and no name that somebody typed."""
    for number in range(failed_attempts.MAX_OF_ADDRESS):
        log_in("wrong", name=f"my-password-{number}")
    written = AuditEntry.objects.count()
    assert written <= failed_attempts.MAX_ENTRIES + 1
    assert not AuditEntry.objects.filter(object__contains="my-password").exists()
    assert not FailedAttempts.objects.filter(subject__contains="my-password").exists()
    prune_sessions(timezone.now() + failed_attempts.PERIOD + failed_attempts.COOL_OFF)
    counted = entries("login.failed")[-1].after
    assert AuditEntry.objects.count() == written + 1
    assert counted["attempts"] == failed_attempts.MAX_OF_ADDRESS - failed_attempts.MAX_ENTRIES
    assert not FailedAttempts.objects.exists()


def test_an_ipv6_network_is_one_client() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1") == "2001:db8::"
    assert network_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert network_of(None) == "unknown"


def test_expired_tokens_are_recorded_once_and_counted() -> None:
    actor = Automatic("script", ATTACKER)
    for _ in range(3):
        failed_attempts.record_expired_token(actor, "token ci", "token 1")
    assert len(entries("token.expired")) == 1


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_parallel_attempts_share_one_limit() -> None:
    """They are counted before the password is looked at."""

    def attempt(_: int) -> bool:
        try:
            failed_attempts.begin("alice", ATTACKER)
        except Busy:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(attempt, range(24))) == failed_attempts.MAX_OF_ACCOUNT
