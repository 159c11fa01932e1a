"""Keys of sessions are random and new with each log-in; passwords are hashed slowly."""

import math

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import VALID_KEY_CHARS
from django.contrib.sessions.models import Session
from django.test import Client, override_settings
from django.urls import URLPattern, URLResolver, get_resolver

from controlplane import settings as installed
from controlplane.access.logins.hashing import YieldingPBKDF2Hasher

pytestmark = pytest.mark.nightly("access")

PASSWORD = "a long enough password"


@pytest.fixture
def user(db: None) -> User:
    return User.objects.create_user("alice", password=PASSWORD)


def key_of(client: Client) -> str:
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def log_in(client: Client) -> str:
    """Return the key of the session after a log-in by the page."""
    answer = client.post("/login/", {"username": "alice", "password": PASSWORD})
    assert answer.status_code == 302
    return key_of(client)


def test_a_key_that_the_client_chose_is_no_session(user: User) -> None:
    client = Client()
    chosen = "a" * 32
    client.cookies[settings.SESSION_COOKIE_NAME] = chosen
    assert log_in(client) != chosen
    assert not Session.objects.filter(session_key=chosen).exists()


def test_a_log_in_has_a_new_key_and_ends_the_former_one(user: User) -> None:
    """Whoever knew the key before the log-in has no session after it."""
    client = Client()
    session = client.session
    session["known"] = True
    session.save()
    before = session.session_key
    assert log_in(client) != before
    assert not Session.objects.filter(session_key=before).exists()
    assert client.get("/account/").status_code == 200


def test_keys_have_128_bits_at_least(user: User) -> None:
    keys = {log_in(Client()) for _ in range(4)}
    assert len(keys) == 4
    for key in keys:
        assert set(key) <= set(VALID_KEY_CHARS)
        assert len(key) * math.log2(len(VALID_KEY_CHARS)) >= 128


def test_the_installed_hash_of_a_password_takes_600_000_rounds(user: User) -> None:
    """PBKDF2 with SHA-256: what OWASP recommends for the storage of passwords."""
    hasher = YieldingPBKDF2Hasher()
    name = f"{type(hasher).__module__}.{type(hasher).__name__}"
    assert installed.PASSWORD_HASHERS[0] == name
    with override_settings(PASSWORD_HASHERS=installed.PASSWORD_HASHERS):
        user.set_password(PASSWORD)
    details = hasher.decode(user.password)
    assert details["algorithm"] == "pbkdf2_sha256"
    assert int(details["iterations"]) >= 600_000


def names(patterns: list[URLPattern | URLResolver]) -> set[str]:
    """Return the names and paths of all addresses."""
    known: set[str] = set()
    for item in patterns:
        if isinstance(item, URLResolver):
            known |= names(item.url_patterns)
        else:
            known |= {str(item.name or ""), str(item.pattern)}
    return known


def test_the_password_alone_identifies_a_user_of_the_log_in(client: Client, db: None) -> None:
    """No address resets a password or asks a question; the form has no other field."""
    form = client.get("/login/").context["form"]
    assert {name for name, field in form.fields.items() if not field.widget.is_hidden} == {
        "username", "password",
    }  # fmt: skip
    for name in names(get_resolver().url_patterns):
        assert not any(word in name for word in ("reset", "forgot", "question", "recover")), name
