"""Second factors: set up, asked for at log-in, limited, removed, and required by a site."""

import base64
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Group, User
from django.db import connections
from django.test import Client
from django.utils import timezone
from django_otp.oath import totp
from pytest_django import Settings

from controlplane.access import failed_attempts, tokens
from controlplane.access.logins import second_factor
from controlplane.access.roles import LOCAL_APPROVER, Actor
from controlplane.background.retention.history import prune_sessions
from controlplane.errors import Busy, Conflict, Forbidden, Invalid
from controlplane.models import (
    AuditEntry,
    ExternalIdentity,
    FailedAttempts,
    LoginSession,
    RecoveryCode,
    SecondFactor,
)
from tests.support import cluster as made

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough password"
ELSEWHERE = "198.51.100.7"


@pytest.fixture
def user(db: None) -> User:
    user = made.actor("viewer", "alice").user
    assert isinstance(user, User)
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that sets the time to seconds from now."""
    start = timezone.now()

    def set_to(seconds: float) -> None:
        now = start + timedelta(seconds=seconds)
        monkeypatch.setattr("django.utils.timezone.now", lambda: now)

    set_to(0)
    return set_to


def code_of(secret: str) -> str:
    """Return what an authenticator shows now, by its secret in base32."""
    since = round(timezone.now().timestamp())
    key = base64.b32decode(secret)
    return f"{totp(key, t0=_now() - since):06d}"


def _now() -> int:
    import time  # noqa: PLC0415

    return int(time.time())


def given_factor(user: User) -> tuple[str, list[str]]:
    """Set up a factor, and return its secret and recovery codes; a step later codes are new."""
    started = second_factor.start_setup(user)
    setup = second_factor.setup_of(user, started)
    assert setup is not None
    codes = second_factor.confirm(Actor(user), user, started, code_of(setup.secret))
    SecondFactor.objects.update(last_step=0)
    return setup.secret, list(codes)


def enter_password(address: str = "127.0.0.1", name: str = "alice") -> Client:
    client = Client(REMOTE_ADDR=address)
    assert client.post("/login/", {"username": name, "password": PASSWORD}).status_code == 302
    return client


def is_logged_in(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))


def test_codes_are_those_of_the_standard(monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 6238, appendix B: the last six of the eight digits."""
    monkeypatch.setattr(second_factor, "secret_of", lambda _: b"12345678901234567890")
    for seconds, code in ((59, "287082"), (1111111109, "081804"), (20000000000, "353130")):
        now = datetime.fromtimestamp(seconds, tz=UTC)
        step = seconds // 30
        for drift in (-30, 0, 30):
            then = now + timedelta(seconds=drift)
            assert second_factor.accepted_step("", code, 0, then) == step
        assert second_factor.accepted_step("", code, step, now) is None
        assert second_factor.accepted_step("", code, 0, now + timedelta(seconds=60)) is None
    assert second_factor.accepted_step("", "\uff1287082", 0, now) is None


def test_a_factor_is_set_up_after_the_password_by_its_first_code(user: User, moment: Any) -> None:
    here, there = Client(), Client()
    here.force_login(user)
    there.force_login(user)
    start, confirm = "/account/second-factor/start/", "/account/second-factor/confirm/"
    assert here.post(start).status_code == 401
    assert here.get("/account/second-factor/").status_code == 302
    assert made.confirmed(here).post(start)["Location"] == "/account/second-factor/"
    page = here.get("/account/second-factor/")
    # Another session of the user does not see the secret.
    assert there.get("/account/second-factor/").status_code == 302
    html = page.content.decode()
    setup = page.context["setup"]
    assert setup.secret in html
    assert "<svg" in html
    assert parse_qs(urlsplit(setup.address).query)["secret"] == [setup.secret]
    assert here.post(confirm, {"code": "000000"}).status_code == 422
    assert not is_asked(user)
    codes = here.post(confirm, {"code": code_of(setup.secret)}).context["codes"]
    assert len(set(codes)) == second_factor.CODES
    assert (is_logged_in(here), is_logged_in(there)) == (True, False)
    assert is_asked(user)
    assert (
        actions()[-2:] == ["second_factor.set_up", "login"] or "second_factor.set_up" in actions()
    )
    assert here.post(start).status_code == 302
    assert SecondFactor.objects.get().confirmed_at is not None


def is_asked(user: User) -> bool:
    form = {"username": user.username, "password": PASSWORD}
    return Client().post("/login/", form)["Location"] == "/login/code/"


def test_a_log_in_has_no_session_before_the_code(user: User, moment: Any) -> None:
    secret, _ = given_factor(user)
    form = {"username": "alice", "password": PASSWORD, "next": "/help/"}
    client = Client()
    assert client.post("/login/", form)["Location"] == "/login/code/"
    key = client.session.session_key
    assert not LoginSession.objects.exists()
    for path in ("/account/", "/", "/admin/"):
        assert "/login/" in client.get(path)["Location"]
    assert client.get("/api/v1/me").status_code == 401
    assert client.get("/login/code/").status_code == 200
    assert client.post("/login/code/", {"code": "000000"}).status_code == 422
    done = client.post("/login/code/", {"code": code_of(secret)})
    assert (done.status_code, done["Location"]) == (302, "/help/")
    assert is_logged_in(client)
    assert client.session.session_key != key
    assert client.session.get_expiry_age() > 3600
    entry = AuditEntry.objects.get(action="login")
    assert entry.after == {"via": "password", "factor": "authenticator"}
    failed = AuditEntry.objects.get(action="login.failed")
    assert failed.after == {"step": "second factor"}


def test_a_code_is_accepted_once(user: User, moment: Any) -> None:
    secret, _ = given_factor(user)
    code = code_of(secret)
    assert enter_password().post("/login/code/", {"code": code}).status_code == 302
    assert enter_password().post("/login/code/", {"code": code}).status_code == 422
    moment(30)
    assert enter_password().post("/login/code/", {"code": code_of(secret)}).status_code == 302


def test_the_code_needs_the_password_of_a_moment_ago(user: User, moment: Any) -> None:
    secret, _ = given_factor(user)
    assert Client().post("/login/code/", {"code": code_of(secret)}).status_code == 400
    late = enter_password()
    moment(601)
    assert late.post("/login/code/", {"code": code_of(secret)}).status_code == 400
    client = enter_password()
    user.set_password("another long password")
    user.save()
    assert client.post("/login/code/", {"code": code_of(secret)}).status_code == 400
    assert not LoginSession.objects.exists()


def test_codes_are_limited_also_for_who_knows_the_password(user: User, moment: Any) -> None:
    """A right password does not take wrong codes back, and passwords have their own count."""
    secret, _ = given_factor(user)
    statuses = [
        enter_password(ELSEWHERE).post("/login/code/", {"code": "000000"}).status_code
        for _ in range(7)
    ]
    assert statuses == [422] * failed_attempts.MAX_OF_ACCOUNT + [429] * 2
    locked = enter_password(ELSEWHERE).post("/login/code/", {"code": code_of(secret)})
    assert (locked.status_code, int(locked["Retry-After"]) > 0) == (429, True)
    assert enter_password().post("/login/code/", {"code": code_of(secret)}).status_code == 302
    assert actions().count("login.failed") == 1
    assert AuditEntry.objects.get(action="login.locked").after["step"] == "second factor"
    prune_sessions(timezone.now() + timedelta(hours=1))
    assert not FailedAttempts.objects.exists()


def test_a_recovery_code_replaces_a_code_once(user: User, moment: Any) -> None:
    _, codes = given_factor(user)
    typed = codes[0].upper().replace("-", " ")
    client = enter_password()
    assert client.post("/login/code/", {"code": typed}).status_code == 302
    assert is_logged_in(client)
    assert enter_password().post("/login/code/", {"code": typed}).status_code == 422
    assert AuditEntry.objects.get(action="second_factor.recovery_code").after == {"left": 9}
    stored = set(RecoveryCode.objects.values_list("digest", flat=True))
    assert stored.isdisjoint({code.replace("-", "") for code in codes})
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in stored)


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_parallel_log_ins_share_a_code() -> None:
    user = User.objects.create_user("bob", password=PASSWORD)
    secret, codes = given_factor(user)

    def attempt(code: str) -> bool:
        try:
            second_factor.verify(Actor(user), user, code)
        except (Invalid, Busy):
            return False
        finally:
            connections.close_all()
        return True

    for code in (code_of(secret), codes[0]):
        with ThreadPoolExecutor(4) as threads:
            assert sum(threads.map(attempt, [code] * 4)) == 1
        FailedAttempts.objects.all().delete()


def test_the_row_alone_computes_no_code(settings: Settings) -> None:
    nonce = second_factor.new_nonce()
    secret = second_factor.secret_of(nonce)
    assert len(secret) == 20
    settings.SECRET_KEY = "another key of the site"
    assert second_factor.secret_of(nonce) != secret


def test_a_factor_is_removed_with_password_and_code(user: User, moment: Any) -> None:
    secret, codes = given_factor(user)
    client = Client()
    client.force_login(user)
    path = "/account/second-factor/remove/"
    assert client.post(path, {"code": codes[0]}).status_code == 401
    assert made.confirmed(client).post(path, {"code": "000000"}).status_code == 422
    assert SecondFactor.objects.exists()
    assert client.post(path, {"code": code_of(secret)}).status_code == 302
    assert not SecondFactor.objects.exists()
    assert not RecoveryCode.objects.exists()
    assert "second_factor.remove" in actions()
    assert is_logged_in(enter_password())


def test_an_administrator_removes_a_factor(user: User, moment: Any) -> None:
    """The user's sessions end; others than admins of all clusters may not."""
    given_factor(user)
    session = Client()
    session.force_login(user)
    for role in ("operator", "approver"):
        with pytest.raises(Forbidden):
            second_factor.remove_of(made.actor(role, f"the-{role}"), "alice")
    admin = made.actor("admin", "root")
    second_factor.remove_of(admin, "alice", "lost phone")
    assert not is_logged_in(session)
    assert is_logged_in(enter_password())
    entry = AuditEntry.objects.get(action="second_factor.remove")
    assert (entry.actor, entry.object, entry.reason) == ("root", "user alice", "lost phone")
    with pytest.raises(Conflict):
        second_factor.remove_of(admin, "alice")


def test_page_and_api_remove_the_factor_of_a_user(user: User, moment: Any) -> None:
    admin = made.actor("admin", "root").user
    assert isinstance(admin, User)
    browser, victim = Client(), Client()
    browser.force_login(admin)
    made.confirmed(browser)
    form, api = {"user": "alice", "reason": "r"}, "/api/v1/users/alice/second-factor"
    for way in ("page", "api"):
        given_factor(user)
        victim.force_login(user)
        if way == "page":
            assert browser.post("/users/remove-second-factor/", form).status_code == 302
        else:
            assert browser.delete(f"{api}?reason=r").status_code == 204
        assert not SecondFactor.objects.exists()
        assert not is_logged_in(victim)
    assert browser.delete(api).status_code == 409
    assert browser.delete("/api/v1/users/nobody/second-factor").status_code == 404


def test_a_site_may_require_the_factor(user: User, settings: Settings, moment: Any) -> None:
    """At the next log-in, before anything else."""
    settings.SECOND_FACTOR = "required"
    client = enter_password()
    assert not LoginSession.objects.exists()
    assert "/login/" in client.get("/account/")["Location"]
    assert client.get("/login/code/").status_code == 200
    assert client.post("/login/code/", {"code": "000000"}).status_code == 422
    page = client.get("/login/second-factor/")
    secret = page.context["setup"].secret
    assert secret in page.content.decode()
    assert client.post("/login/second-factor/", {"code": "000000"}).status_code == 422
    done = client.post("/login/second-factor/", {"code": code_of(secret)})
    assert (done.status_code, len(done.context["codes"])) == (200, second_factor.CODES)
    assert is_logged_in(client)
    assert client.get("/login/second-factor/").status_code == 400
    assert is_asked(user)


def test_a_setup_is_that_of_the_browser_that_started_it(
    user: User, settings: Settings, moment: Any
) -> None:
    """Another person who knows the password does not see the secret that the user confirms."""
    settings.SECOND_FACTOR = "required"
    attacker, person = enter_password(), enter_password()
    path = "/login/second-factor/"
    assert attacker.get(path).status_code == 400
    secret = person.get(path).context["setup"].secret
    assert attacker.post(path, {"code": code_of(secret)}).status_code == 400
    assert person.post(path, {"code": code_of(secret)}).status_code == 200


def test_an_earlier_session_creates_no_token_without_the_required_factor(
    user: User, settings: Settings, moment: Any
) -> None:
    client = Client()
    client.force_login(user)
    form = {"name": "n", "role": "viewer", "days": 3}
    secret = tokens.create(user, "before")
    made.confirmed(client)
    settings.SECOND_FACTOR = "required"
    refused = client.post("/api/v1/tokens", form, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "second_factor_needed")
    by_token = Client(headers={"Authorization": f"Bearer {secret}"})
    assert by_token.get("/api/v1/me").status_code == 200
    given_factor(user)
    client.force_login(user)
    made.confirmed(client)
    created = client.post("/api/v1/tokens", form, content_type="application/json")
    assert created.status_code == 201


def test_the_demos_user_is_exempt_on_this_machine_only(
    user: User, settings: Settings, moment: Any
) -> None:
    settings.SECOND_FACTOR = "required"
    user.groups.add(Group.objects.get_or_create(name=LOCAL_APPROVER)[0])
    assert is_logged_in(enter_password("127.0.0.1"))
    assert not is_logged_in(enter_password(ELSEWHERE))
    form = {"username": "alice", "password": PASSWORD}
    forwarded = Client(headers={"X-Forwarded-For": "127.0.0.1"})
    assert forwarded.post("/login/", form)["Location"] == "/login/second-factor/"


def test_users_of_single_sign_on_are_exempt(settings: Settings) -> None:
    """Their provider decides about factors; `test_single_sign_on` logs them in."""
    settings.SECOND_FACTOR = "required"
    user = made.actor("viewer", "ada").user
    assert isinstance(user, User)
    user.set_unusable_password()
    user.save()
    ExternalIdentity.objects.create(user=user, issuer="https://login.example", subject="s-1")
    tokens.make(Actor(user, is_confirmed=True), "n")


def test_setups_without_a_first_code_are_deleted(user: User, moment: Any) -> None:
    started = second_factor.start_setup(user)
    assert not is_asked(user)
    moment(601)
    assert second_factor.setup_of(user, started) is None
    with pytest.raises(Conflict):
        second_factor.confirm(Actor(user), user, started, "000000")
    assert second_factor.housekeep(timezone.now()) == 1
