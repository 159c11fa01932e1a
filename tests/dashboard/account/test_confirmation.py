"""Changes of what gives access need the password again: once in ten minutes, on one page."""

import html
import json
import re
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from controlplane.access import tokens
from controlplane.access.roles import CONFIRMED_AT, CONFIRMED_FOR
from controlplane.models import ApiToken, AuditEntry, Cluster, Grant
from tests.support import cluster as made

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough password"
TOKEN = {"name": 'a "job"\r\nof <two> lines', "role": "viewer", "days": "3", "cluster": ""}
CONFIRM = "/account/confirm/?to=/tokens/make/"


@pytest.fixture
def admin(redis_url: str) -> User:
    user = made.actor("admin", "alice").user
    assert isinstance(user, User)
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def browser(admin: User) -> Client:
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin)
    client.get("/account/")
    return client


def send(client: Client, path: str, form: dict[str, str]) -> Any:
    """Send a form as a browser does, with its CSRF token."""
    token = client.cookies["csrftoken"].value
    return client.post(path, form | {"csrfmiddlewaretoken": token})


def shown_form(page: str) -> tuple[str, dict[str, str]]:
    """Return the address and the fields of the form of a page, as a browser would send them."""
    action = re.search(r'<form method="post" action="([^"]+)"', page)
    assert action is not None
    fields = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page)
    return html.unescape(action[1]), {name: html.unescape(value) for name, value in fields}


def test_the_started_form_continues_with_its_data(browser: Client) -> None:
    asked = send(browser, "/tokens/make/", TOKEN)
    assert (asked.status_code, ApiToken.objects.count()) == (401, 0)
    address, fields = shown_form(asked.content.decode())
    assert {name: fields[name] for name in TOKEN} == TOKEN
    wrong = send(browser, address, fields | {"own_password": "wrong"})
    assert wrong.status_code == 422
    address, fields = shown_form(wrong.content.decode())
    assert {name: fields[name] for name in TOKEN} == TOKEN
    right = send(browser, address, fields | {"own_password": PASSWORD})
    assert (right.status_code, right["Location"]) == (307, "/tokens/make/")
    assert send(browser, right["Location"], fields | {"own_password": PASSWORD}).status_code == 201
    assert ApiToken.objects.get().role == "viewer"
    assert not AuditEntry.objects.filter(action="access.refused").exists()
    assert AuditEntry.objects.get(action="session.confirm").actor == "alice"


def test_a_confirmation_ends(browser: Client, admin: User) -> None:
    """After its time, with its session, and if the clock is set back."""
    made.confirmed(browser)
    assert send(browser, "/tokens/make/", TOKEN).status_code == 201
    for moment in (time.time() - CONFIRMED_FOR.total_seconds() - 1, time.time() + 3600):
        session = browser.session
        session[CONFIRMED_AT] = moment
        session.save()
        assert send(browser, "/tokens/make/", TOKEN).status_code == 401
    made.confirmed(browser)
    browser.logout()
    browser.force_login(admin)
    browser.get("/account/")
    assert send(browser, "/tokens/make/", TOKEN).status_code == 401


def test_attempts_are_limited_and_only_own_addresses_follow(browser: Client) -> None:
    statuses = [send(browser, CONFIRM, {"own_password": "wrong"}).status_code for _ in range(6)]
    assert statuses == [422] * 5 + [429]


@pytest.mark.parametrize(
    "to", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", ""]
)
def test_the_password_goes_to_no_other_site(browser: Client, to: str) -> None:
    done = browser.post(
        "/account/confirm/",
        {"own_password": PASSWORD, "csrfmiddlewaretoken": browser.cookies["csrftoken"].value},
        query_params={"to": to},
    )
    assert (done.status_code, done["Location"]) == (307, "/")


def test_another_site_cannot_confirm(browser: Client) -> None:
    assert browser.post(CONFIRM, {"own_password": PASSWORD}).status_code == 403
    assert Client().post(CONFIRM, {"own_password": PASSWORD})["Location"].startswith("/login/")


def test_the_role_admin_is_confirmed_and_others_are_not(browser: Client) -> None:
    Cluster.objects.create(slug="sf", name="SF")
    User.objects.create_user("eve")
    form = {"user": "eve", "role": "admin", "cluster": "sf", "reason": "on call"}
    for cluster in ("sf", ""):
        asked = send(browser, "/grants/set/", form | {"cluster": cluster})
        assert (asked.status_code, Grant.objects.count()) == (401, 0)
    assert send(browser, "/grants/set/", form | {"role": "operator"}).status_code == 302
    assert Grant.objects.get().role == "operator"
    assert send(browser, "/grants/set/", form).status_code == 401
    made.confirmed(browser)
    assert send(browser, "/grants/set/", form).status_code == 302
    assert Grant.objects.get().role == "admin"


def test_the_api_says_what_is_needed(browser: Client, admin: User) -> None:
    """A session gets 401 until it has confirmed, a token 403 always."""
    User.objects.create_user("eve")
    client = Client()
    client.force_login(admin)
    script = Client(headers={"Authorization": f"Bearer {tokens.create(admin, 'job')}"})
    body = {"name": "n", "role": "viewer"}
    calls: tuple[tuple[str, str, dict[str, str], int], ...] = (
        ("POST", "/api/v1/tokens", body, 201),
        ("PUT", "/api/v1/grants/eve", {"role": "admin"}, 200),
        ("DELETE", "/api/v1/users/eve/second-factor", {}, 409),
    )
    for method, path, values, done in calls:
        sent = (method, path, json.dumps(values), "application/json")
        asked, refused = client.generic(*sent), script.generic(*sent)
        assert (asked.status_code, asked.json()["code"]) == (401, "confirmation_needed"), path
        assert (refused.status_code, refused.json()["code"]) == (403, "login_needed"), path
        assert made.confirmed(client).generic(*sent).status_code == done, path
        session = client.session
        del session[CONFIRMED_AT]
        session.save()


def test_the_cookie_of_a_confirmed_session_helps_no_token(admin: User) -> None:
    client = Client(headers={"Authorization": f"Bearer {tokens.create(admin, 'job')}"})
    client.force_login(admin)
    made.confirmed(client)
    made_token = client.post("/api/v1/tokens", {"name": "n"}, content_type="application/json")
    assert (made_token.status_code, made_token.json()["code"]) == (403, "login_needed")
