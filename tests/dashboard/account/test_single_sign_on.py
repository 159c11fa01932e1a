"""Single sign-on against a real provider over HTTP: the code flow with PKCE, groups as roles."""

import base64
import hashlib
import html
import io
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit
from wsgiref.simple_server import make_server

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from oidc_provider_mock import User as Person
from oidc_provider_mock import app as provider_app
from oidc_provider_mock._server import _threaded_server
from pytest_django import Settings

from controlplane.access.logins import single_sign_on
from controlplane.errors import Conflict
from controlplane.models import AuditEntry, ExternalIdentity, LoginSession

pytestmark = [
    pytest.mark.nightly("pages"),
    pytest.mark.django_db,
    # The provider's, not ours.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
NOW = round(time.time())
PEOPLE = [
    Person(sub="s-1", claims={"preferred_username": "ada", "groups": ["weir-ops", "staff"]}),
    Person(sub="s-2", claims={"preferred_username": "operator", "groups": ["weir-admins"]}),
    Person(sub="s-3", claims={"preferred_username": "eve", "groups": ["staff"]}),
    *(Person(sub=sub, claims={"preferred_username": sub, "groups": ["weir-ops"], "acr": acr})
      for sub, acr in (("weak", "urn:weak"), ("strong", "urn:strong"), ("list", ["urn:strong"]))),
    *(Person(sub=sub, claims={"preferred_username": sub, "groups": ["weir-ops"], "auth_time": at})
      for sub, at in (("now", NOW), ("earlier", NOW - 600), ("day-ago", NOW - 86_400),
                      ("later", NOW + 86_400), ("text", "now"), ("flag", True))),
]  # fmt: skip


class RequiresPKCE:
    """A WSGI middleware that refuses a code without its verifier, as strict providers do."""

    def __init__(self, application: Any) -> None:
        self.application = application
        self.challenges: list[str] = []
        self.verified = 0

    def __call__(self, environ: Any, start_response: Any) -> Any:
        query = parse_qs(environ.get("QUERY_STRING", ""))
        if environ["PATH_INFO"].endswith("authorize") and "code_challenge" in query:
            assert query["code_challenge_method"] == ["S256"]
            self.challenges += query["code_challenge"]
        if environ["PATH_INFO"].endswith("token") and not self._is_verified(environ):
            start_response("400 Bad Request", [("Content-Type", "application/json")])
            return [b'{"error": "invalid_grant"}']
        return self.application(environ, start_response)

    def _is_verified(self, environ: Any) -> bool:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        verifier = parse_qs(body.decode()).get("code_verifier", [""])[0]
        digest = hashlib.sha256(verifier.encode()).digest()
        known = base64.urlsafe_b64encode(digest).decode().rstrip("=") in self.challenges
        self.verified += known
        return known


@pytest.fixture(scope="module")
def provider() -> Iterator[tuple[str, RequiresPKCE]]:
    """The issuer of a running provider, and the check of its codes."""
    application = provider_app(require_nonce=True, user_claims=PEOPLE)
    application.wsgi_app = check = RequiresPKCE(application.wsgi_app)
    with _threaded_server(application) as server:
        yield f"http://localhost:{server.server_port}", check


@pytest.fixture(autouse=True)
def configured(provider: tuple[str, RequiresPKCE], settings: Settings) -> None:
    settings.OIDC_ISSUER = provider[0]
    settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = "weir", "a secret"
    settings.OIDC_ROLES = {"weir-ops": "operator", "weir-admins": "admin"}


def sent_to_provider(browser: Client) -> str:
    """Begin to log in, and return the address at the provider."""
    response = browser.get("/login/sso/?next=/account/")
    assert response.status_code == 302
    return str(response["Location"])


def log_in(browser: Client, subject: str) -> Any:
    """Log in at the provider, and return Weir's response to the redirect of the provider."""
    address = sent_to_provider(browser)
    back = httpx.post(address, data={"sub": subject}, follow_redirects=False)
    assert back.status_code == 302, back.text
    callback = urlsplit(back.headers["location"])
    return browser.get(f"{callback.path}?{callback.query}")


def roles(user: User) -> list[str]:
    return list(user.groups.values_list("name", flat=True))


def test_a_person_of_the_provider_logs_in(provider: tuple[str, RequiresPKCE]) -> None:
    browser = Client()
    response = log_in(browser, "s-1")
    assert (response.status_code, response["Location"]) == (302, "/account/")
    assert browser.get("/account/").status_code == 200
    user = User.objects.get(username="ada")
    assert roles(user) == ["operator"]
    assert not user.has_usable_password()
    assert LoginSession.objects.get().via == LoginSession.Via.SSO
    assert AuditEntry.objects.filter(action="login", actor="ada").exists()
    assert provider[1].verified == 1


def test_a_name_of_the_provider_takes_over_no_user_of_weir() -> None:
    """Subjects identify, names do not."""
    local = User.objects.create_user("operator", password="a long enough password")
    assert log_in(Client(), "s-2").status_code == 302
    identity = ExternalIdentity.objects.get(subject="s-2")
    assert identity.user != local
    assert identity.user.username == "operator-2"
    assert (roles(local), roles(identity.user)) == ([], ["admin"])
    assert log_in(Client(), "s-2").status_code == 302
    assert ExternalIdentity.objects.count() == 1


def test_groups_decide_the_role_again_at_each_login(settings: Settings) -> None:
    log_in(Client(), "s-1")
    settings.OIDC_ROLES = {"staff": "viewer"}
    log_in(Client(), "s-1")
    assert roles(User.objects.get(username="ada")) == ["viewer"]
    settings.OIDC_ROLES = {}
    browser = Client()
    assert log_in(browser, "s-1").status_code == 403
    assert roles(User.objects.get(username="ada")) == []
    assert browser.get("/account/").status_code == 302


def test_a_log_in_has_one_of_the_required_classes(settings: Settings) -> None:
    """`acr` is requested, and compared: a provider may ignore what was requested."""
    settings.OIDC_ACR_VALUES = ["urn:strong", "urn:phishing-resistant"]
    query = parse_qs(urlsplit(sent_to_provider(Client())).query)
    assert query["acr_values"] == ["urn:strong urn:phishing-resistant"]
    assert log_in(Client(), "strong").status_code == 302
    for subject, acr in (("weak", "urn:weak"), ("s-1", "none"), ("list", "['urn:strong']")):
        response = log_in(Client(), subject)
        refusal = response.context["refusal"]
        assert (response.status_code, refusal.code) == (403, "weak_login")
        assert refusal.data["acr"] == acr
        assert not User.objects.filter(username=subject).exists()
    entry = AuditEntry.objects.filter(action="login.refused").first()
    assert entry is not None
    assert entry.after["reason"] == "weak_login"


def test_a_log_in_at_the_provider_is_not_too_old(settings: Settings) -> None:
    settings.OIDC_MAX_AGE = timedelta(hours=1)
    query = parse_qs(urlsplit(sent_to_provider(Client())).query)
    assert query["max_age"] == ["3600"]
    assert [log_in(Client(), subject).status_code for subject in ("now", "earlier")] == [302, 302]
    for subject in ("day-ago", "later", "text", "flag"):
        response = log_in(Client(), subject)
        assert response.status_code == 403, subject
        # Authlib refuses what is not a number.
        wanted = "not_authenticated" if subject == "text" else "old_login"
        assert response.context["refusal"].code == wanted
    assert not LoginSession.objects.filter(user__username="day-ago").exists()
    # The provider of the tests always states the time; others may leave it out.
    with pytest.raises(Conflict):
        single_sign_on._check_strength(RequestFactory().get("/"), {"sub": "s-1"}, timedelta(1))


def test_without_settings_the_provider_decides() -> None:
    query = parse_qs(urlsplit(sent_to_provider(Client())).query)
    assert not {"acr_values", "max_age"} & set(query)
    assert log_in(Client(), "day-ago").status_code == log_in(Client(), "weak").status_code == 302


def test_a_required_second_factor_is_that_of_the_provider(settings: Settings) -> None:
    settings.SECOND_FACTOR = "required"
    browser = Client()
    assert log_in(browser, "s-1").status_code == 302
    assert browser.get("/account/").status_code == 200


def test_a_person_without_a_role_is_refused_and_gets_no_user() -> None:
    response = log_in(Client(), "s-3")
    assert response.status_code == 403
    assert response.context["refusal"].code == "no_role"
    assert not User.objects.filter(username="eve").exists()
    assert AuditEntry.objects.get(action="login.refused").object == "subject s-3"


def test_a_code_of_another_browser_is_refused() -> None:
    """A response without the state of this session, as in a forged log-in."""
    other = Client()
    back = httpx.post(sent_to_provider(other), data={"sub": "s-1"}, follow_redirects=False)
    callback = urlsplit(back.headers["location"])
    victim = Client()
    sent_to_provider(victim)
    response = victim.get(f"{callback.path}?{callback.query}")
    assert response.status_code == 403
    assert response.context["refusal"].code == "not_authenticated"
    assert not LoginSession.objects.exists()


def test_a_provider_that_is_away_is_reported(settings: Settings) -> None:
    settings.OIDC_ISSUER = "http://localhost:9"
    response = Client().get("/login/sso/")
    assert response.status_code == 503
    assert response.context["refusal"].code == "provider_away"


def test_metadata_of_another_issuer_are_refused(
    provider: tuple[str, RequiresPKCE], settings: Settings
) -> None:
    """The same provider by another address: its metadata name the first one."""
    metadata = httpx.get(f"{provider[0]}/.well-known/openid-configuration").json()
    assert metadata["issuer"] == provider[0]
    settings.OIDC_CLIENT_ID = "of another issuer"
    with _metadata_server({**metadata, "issuer": "https://elsewhere.example"}) as issuer:
        settings.OIDC_ISSUER = issuer
        assert Client().get("/login/sso/").status_code == 503
    with _metadata_server(metadata) as issuer:
        settings.OIDC_ISSUER = issuer
        assert Client().get("/login/sso/").status_code == 503


@contextmanager
def _metadata_server(metadata: dict[str, Any]) -> Iterator[str]:
    """Serve the metadata, and yield the issuer whose metadata they seem to be."""

    def application(_environ: Any, start: Any) -> list[bytes]:
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(metadata).encode()]

    with make_server("localhost", 0, application) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_without_a_provider_there_is_no_single_sign_on(settings: Settings) -> None:
    settings.OIDC_ISSUER = ""
    assert Client().get("/login/sso/").status_code == 404
    assert b"/login/sso/" not in Client().get("/login/").content


def confirm_again(browser: Client, subject: str) -> Any:
    """Log in once more as the page of the confirmation asks, and return Weir's response."""
    asked = browser.post("/tokens/make/", {"name": 'a "job"', "role": "viewer", "days": "3"})
    assert asked.status_code == 401
    shown = asked.content.decode()
    assert "own_password" not in shown
    # The form waits in its tab.
    assert re.search('<form method="post" action="/tokens/make/">', shown)
    assert 'name="name" value="a &quot;job&quot;"' in shown
    link = re.search('href="(/login/sso/[^"]+)" target="_blank"', shown)
    assert link is not None
    address = str(browser.get(html.unescape(link[1]))["Location"])
    query = parse_qs(urlsplit(address).query)
    assert (query["prompt"], query["max_age"]) == (["login"], ["0"])
    back = httpx.post(address, data={"sub": subject}, follow_redirects=False)
    callback = urlsplit(back.headers["location"])
    return browser.get(f"{callback.path}?{callback.query}")


def test_a_person_confirms_by_another_log_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same session continues with the form that waited."""
    moment = datetime.fromtimestamp(NOW, tz=UTC)
    monkeypatch.setattr("django.utils.timezone.now", lambda: moment)
    browser = Client()
    log_in(browser, "now")
    page = confirm_again(browser, "now")
    assert (page.status_code, page["Location"]) == (302, "/account/")
    assert LoginSession.objects.count() == 1
    made = browser.post("/tokens/make/", {"name": "job", "role": "viewer", "days": "3"})
    assert made.status_code == 201
    assert AuditEntry.objects.filter(action="session.confirm", actor="now").exists()


@pytest.mark.parametrize(
    ("person", "again"),
    [("now", "s-1"), ("now", "earlier"), ("earlier", "earlier"), ("later", "later"),
     ("flag", "flag")],
)  # fmt: skip
def test_another_person_or_an_old_log_in_confirms_nothing(
    monkeypatch: pytest.MonkeyPatch, person: str, again: str
) -> None:
    moment = datetime.fromtimestamp(NOW, tz=UTC)
    monkeypatch.setattr("django.utils.timezone.now", lambda: moment)
    browser = Client()
    log_in(browser, person)
    assert confirm_again(browser, again).status_code == 403
    refused = browser.post("/tokens/make/", {"name": "job", "role": "viewer", "days": "3"})
    assert refused.status_code == 401
    assert AuditEntry.objects.filter(action="login.refused").exists()
