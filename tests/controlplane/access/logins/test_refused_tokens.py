"""Tokens that do not hold: 401 on every method, with or without a session, and in the audit log."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from controlplane.access import tokens
from controlplane.access.roles import Actor
from controlplane.models import ApiToken, AuditEntry, Cluster
from tests.controlplane.api.callers import get, post, scripted, user_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def expired(operator: Actor, sf: Cluster) -> Client:
    """A script whose token expired a minute ago."""
    script = scripted(operator)
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    return script


def code(response: object) -> tuple[int, str]:
    return response.status_code, response.json()["code"]  # type: ignore[attr-defined]


def test_an_expired_token_is_not_logged_in_on_reads_and_writes(expired: Client) -> None:
    """It was "CSRF check failed" on writes, which is not what is wrong."""
    for response in (get(expired, "/clusters"), post(expired, "/clusters/sf/start")):
        assert code(response) == (401, "unauthorized")
        assert response["WWW-Authenticate"] == "Bearer"
    assert expired.get("/metrics").status_code == 401


@pytest.mark.parametrize("header", ["Bearer weir_wrong", "Bearer ", "bearer x y"])
def test_a_wrong_token_is_401_also_with_a_session(
    operator: Actor, sf: Cluster, header: str
) -> None:
    """The session does not replace the token that was sent."""
    browser = Client(enforce_csrf_checks=True, headers={"authorization": header})
    assert code(post(browser, "/clusters/sf/start")) == (401, "unauthorized")
    browser.force_login(user_of(operator))
    assert code(get(browser, "/clusters")) == (401, "unauthorized")


def test_an_anonymous_write_is_401(sf: Cluster) -> None:
    """Without a user there is nothing to forge."""
    assert code(post(Client(enforce_csrf_checks=True), "/clusters/sf/start")) == (
        401,
        "unauthorized",
    )


def test_the_use_of_an_expired_token_is_recorded(expired: Client, operator: Actor) -> None:
    for _ in range(3):
        get(expired, "/clusters")
    entry = AuditEntry.objects.get(action="token.expired")
    assert (entry.actor, entry.address) == (operator.name, "127.0.0.1")


def test_every_token_expires(operator: Actor) -> None:
    """Also those of management commands, which made them for ever."""
    tokens.create(user_of(operator), "service")
    call_command("create_token", operator.name, "script")
    longest = timezone.now() + timedelta(days=tokens.DEFAULT_DAYS)
    assert all(row.expires_at <= longest for row in ApiToken.objects.all())
    with pytest.raises(CommandError):
        call_command("create_token", operator.name, "script", "--days", "400")


def test_a_stored_response_is_not_for_former_viewers(operator: Actor, sf: Cluster) -> None:
    """An idempotency key holds for a day; access may end before."""
    script = scripted(operator)
    key = {"Idempotency-Key": "0123456789"}
    assert post(script, "/clusters/sf/start", **key).status_code == 200
    assert post(script, "/clusters/sf/start", **key)["Idempotent-Replayed"] == "true"
    user_of(operator).groups.clear()
    assert post(script, "/clusters/sf/start", **key).status_code in (403, 404)
