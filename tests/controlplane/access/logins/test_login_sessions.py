"""Sessions of users: they end when idle, by age, by another password and everywhere at once."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import User
from django.test import Client
from django.urls import get_resolver
from django.utils import timezone

from controlplane.access import tokens
from controlplane.access.logins import login_sessions
from controlplane.models import ApiToken, AuditEntry, Cluster, FailedAttempts, LoginSession
from controlplane.processes.asgi import LANES
from controlplane.processes.runtime import request_bounds
from tests.support import cluster as made

pytestmark = [pytest.mark.django_db, pytest.mark.nightly("access")]
JSON = "application/json"
OLD, NEW = "a long enough password", "another long password"


@pytest.fixture
def user(db: None) -> User:
    user = made.actor("viewer", "alice").user
    assert isinstance(user, User)
    user.set_password(OLD)
    user.save()
    return user


def browser(user: User) -> Client:
    client = Client()
    assert client.login(username=user.username, password=OLD)
    return client


def status(client: Client, **headers: str) -> int:
    return client.get("/account/", headers=headers).status_code


def at(monkeypatch: pytest.MonkeyPatch, moment: Any) -> None:
    monkeypatch.setattr("django.utils.timezone.now", lambda: moment)


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))


def test_an_idle_session_ends(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of an open page alone do not keep it."""
    client, start = browser(user), timezone.now()
    at(monkeypatch, start + settings.SESSION_IDLE * 0.9)
    assert status(client, **{"HX-Request": "true"}) == 200
    assert status(client, **{"Sec-Fetch-Dest": "empty"}) == 200
    at(monkeypatch, start + settings.SESSION_IDLE * 1.1)
    assert status(client) == 302
    assert LoginSession.objects.get().ended_by == LoginSession.Ended.IDLE
    assert actions()[-1] == "session.expire"


def test_a_session_in_use_ends_by_age(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    client, start = browser(user), timezone.now()
    hours = round(settings.SESSION_MAX_AGE / timedelta(hours=1))
    for hour in range(1, hours):
        at(monkeypatch, start + timedelta(hours=hour))
        assert status(client) == 200
    at(monkeypatch, start + settings.SESSION_MAX_AGE + timedelta(minutes=1))
    assert status(client) == 302


def test_a_session_is_that_of_its_row(user: User) -> None:
    """A session whose row has ended is not a session, whatever its cookie and its key are."""
    client = browser(user)
    LoginSession.objects.update(ended_at=timezone.now())
    assert status(client) == 302


def end(client: Client, session: object) -> int:
    """Return the status of the end of a session."""
    return client.post("/account/sessions/end-one/", {"session": str(session)}).status_code


def test_log_out_everywhere(user: User) -> None:
    """After a confirmation."""
    here, there = browser(user), browser(user)
    path = "/account/sessions/end/"
    assert here.post(path).status_code == 401
    assert (status(here), status(there)) == (200, 200)
    assert made.confirmed(here).post(path).status_code == 302
    assert (status(here), status(there)) == (302, 302)
    assert "session.end_all" in actions()


def test_one_session_is_ended_and_only_an_own_one(user: User) -> None:
    here, there = browser(user), browser(user)
    other = there.session["login"]
    assert end(here, other) == 401
    assert status(there) == 200
    assert end(made.confirmed(here), other) == 302
    assert (status(here), status(there)) == (200, 302)
    mallory = User.objects.create_user("mallory", password=OLD)
    stranger = Client()
    stranger.force_login(mallory)
    made.confirmed(stranger)
    mine = here.session["login"]
    assert end(stranger, mine) == end(stranger, "no id") == 302
    assert status(here) == 200


def test_every_page_that_compares_a_password_is_queued(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So hashes wait in turn, in front of the threads that answer pages."""
    compared: set[str] = set()
    path = ""

    def counted(password: str, encoded: str) -> bool:
        compared.add(path)
        return check_password(password, encoded)

    monkeypatch.setattr("controlplane.access.logins.reauthentication.check_password", counted)
    client = browser(user)
    form = {"session": client.session["login"]}
    made.confirmed(client)
    for pattern in get_resolver("dashboard.urls").url_patterns:
        path = f"/{pattern.pattern}"
        if path.startswith("/account/"):
            FailedAttempts.objects.all().delete()
            client.post(path, form)
    assert compared == {"/account/confirm/", "/account/password/"}
    queued = {path for (method, path), lane in LANES.items() if lane is request_bounds.LOGINS}
    assert compared | {"/login/", "/login/code/", "/login/second-factor/"} <= queued


def test_an_administrator_ends_all_sessions_of_a_user(user: User) -> None:
    """On the page and by the API; others are refused, and tokens stay valid."""
    token = tokens.create(user, "script")
    clients = {}
    for role in ("approver", "admin"):
        clients[role] = Client()
        person = made.actor(role, f"the-{role}").user
        assert isinstance(person, User)
        clients[role].force_login(person)
    form = {"user": "alice", "reason": "left"}
    victim = browser(user)
    api = "/api/v1/users/alice/end-sessions"
    assert clients["approver"].post("/users/end-sessions/", form).status_code == 403
    assert clients["approver"].post(api, {}, content_type=JSON).status_code == 403
    assert status(victim) == 200
    assert clients["admin"].post("/users/end-sessions/", form).status_code == 302
    assert status(victim) == 302
    victim = browser(user)
    done = clients["admin"].post(api, {"reason": "left"}, content_type=JSON)
    assert (done.status_code, done.json()) == (200, {"ended": 1})
    assert status(victim) == 302
    assert status(clients["admin"]) == 200
    assert Client(headers={"Authorization": f"Bearer {token}"}).get("/api/v1/me").status_code == 200
    entries = AuditEntry.objects.filter(action="session.end_all", actor="the-admin")
    assert {(entry.object, entry.reason) for entry in entries} == {("user alice", "left")}
    assert clients["admin"].post("/api/v1/users/x/end-sessions", {}, content_type=JSON
                                 ).status_code == 404  # fmt: skip


def change(client: Client, current: str, new: str, repeated: str = "") -> int:
    form = {"current": current, "new": new, "repeated": repeated or new}
    return client.post("/account/password/", form).status_code


def test_a_password_change_ends_the_other_sessions(user: User) -> None:
    here, there = browser(user), browser(user)
    key = here.session.session_key
    assert change(here, OLD, NEW) == 302
    assert (status(here), status(there)) == (200, 302)
    assert here.session.session_key != key
    assert Client().login(username="alice", password=NEW)
    entry = AuditEntry.objects.get(action="password.change", actor="alice")
    assert entry.object == "user alice"


@pytest.mark.parametrize("is_checked", [True, False])
def test_a_password_change_offers_to_revoke_tokens(user: User, is_checked: bool) -> None:
    """They outlive the session of the person who made them."""
    client = browser(user)
    assert b"with_tokens" not in client.get("/account/").content
    for name in ("job", "another"):
        tokens.create(user, name)
    stranger = tokens.create(User.objects.create_user("mallory"), "kept")
    page = client.get("/account/").content.decode()
    assert re.search(r'name="with_tokens" type="checkbox" checked> Revoke your 2 tokens', page)
    form = {"current": "wrong", "new": NEW, "repeated": NEW}
    form |= {"with_tokens": "on"} if is_checked else {}
    again = client.post("/account/password/", form)
    assert (again.status_code, ApiToken.objects.count()) == (422, 3)
    assert ('type="checkbox" checked>' in again.content.decode()) is is_checked
    assert client.post("/account/password/", form | {"current": OLD}).status_code == 302
    assert ApiToken.objects.filter(user=user).count() == (0 if is_checked else 2)
    assert tokens.user_of_valid(stranger) is not None
    entries = AuditEntry.objects.filter(action="token.revoke_all", actor="alice")
    assert [entry.after for entry in entries] == ([{"tokens": 2}] if is_checked else [])


def test_weak_and_wrong_passwords_are_refused(user: User) -> None:
    """By Django's validators; the current password counts as an attempt to log in."""
    client = browser(user)
    assert change(client, OLD, "alice123") == 422
    assert change(client, OLD, NEW, "something else") == 422
    assert [change(client, "wrong", NEW) for _ in range(6)] == [422] * 5 + [429]
    assert status(client) == 200


@pytest.mark.parametrize(
    "password", ["weir-Cluster-2026", "weirweir!!", "tidewater.spark1", "spark operator"]
)
def test_words_of_the_site_are_no_password(user: User, password: str) -> None:
    """Words of the product, and the names of clusters and hosts."""
    Cluster.objects.create(slug="tidewater", name="Tidewater")
    client = browser(user)
    assert change(client, OLD, password) == 422
    assert change(client, OLD, f"{password} heron") == 302


def test_long_passwords_of_any_letters_are_kept_whole(user: User) -> None:
    """Password fields are masked, and password managers fill them in."""
    client, long = browser(user), "größer als ein Heron " * 6
    assert change(client, OLD, long.strip()) == 302
    assert not Client().login(username="alice", password=long.strip()[:-1])
    assert Client().login(username="alice", password=long.strip())
    for path, count in (("/account/", 3), ("/login/", 1)):
        page = (Client() if path == "/login/" else client).get(path).content.decode()
        fields = {tag for tag in re.findall("<input[^>]*>", page) if 'type="password"' in tag}
        assert len(fields) == count
        for tag in fields:
            assert re.search('autocomplete="(current|new)-password"', tag)
            assert "maxlength" not in tag
            assert "onpaste" not in tag


def test_a_password_set_by_an_administrator_ends_all_sessions(user: User) -> None:
    client = browser(user)
    user.set_password(NEW)
    user.save()
    assert LoginSession.objects.get().ended_by == LoginSession.Ended.PASSWORD
    assert status(client) == 302


def test_no_response_of_a_user_is_stored(user: User) -> None:
    client = Client()
    client.post("/login/", {"username": "alice", "password": OLD})
    for path in ("/", "/account/", "/api/v1/me", "/login/", "/admin/login/"):
        assert client.get(path)["Cache-Control"] == "no-store, private", path
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert int(cookie["max-age"]) <= settings.SESSION_MAX_AGE.total_seconds()


def test_a_user_cannot_fill_the_database_with_sessions(user: User) -> None:
    """Each log-in stores rows, so an hour has room for some."""
    now = timezone.now()
    LoginSession.objects.bulk_create(
        LoginSession(user=user, via="password", auth_hash="h", started_at=now - age, seen_at=now)
        for age in (timedelta(minutes=5), timedelta(hours=2))
        for _ in range(login_sessions.MAX_PER_HOUR - 1)
    )
    form = {"username": "alice", "password": OLD}
    assert Client().post("/login/", form).status_code == 302
    full = Client().post("/login/", form)
    assert (full.status_code, int(full["Retry-After"])) == (429, 600)
    assert Client().post("/login/", form | {"password": "wrong"}).status_code == 200
    assert LoginSession.objects.count() == 2 * login_sessions.MAX_PER_HOUR - 1
