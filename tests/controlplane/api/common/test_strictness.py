"""Unknown fields and parameters are refused everywhere; foreign clusters look like unknown ones."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.access.roles import Actor
from controlplane.api import api
from controlplane.models import Cluster
from tests.controlplane.api.authorisation.addresses import pages
from tests.controlplane.api.callers import JSON, get, granted, post, scripted, user_of

pytestmark = pytest.mark.django_db
SCHEMA = api.get_openapi_schema(path_prefix="api/v1/")
METHODS = ("get", "post", "put", "patch", "delete")


@pytest.fixture
def admin(db: None, redis_url: str) -> Client:
    """A client with a token of an admin."""
    return scripted(Actor(User.objects.create_superuser("root")))


# A token, and those who manage no such webhook, are refused before the body is read.
NOT_ADMITTED = ("/api/v1/tokens", "/api/v1/webhooks/{pk}")


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in SCHEMA["paths"].items():
        for method in METHODS:
            if method in methods:
                yield method, path, methods[method]


def address(path: str, slug: str = "sf") -> str:
    """Return a path with values for its parameters."""
    known = {"slug": slug, "planner": "placement", "name": "q", "key": "s0", "stream": "s0"}
    return re.sub(r"\{(\w+)\}", lambda match: known.get(match[1], "1"), path)


def example(operation: dict[str, Any]) -> dict[str, Any] | None:
    """Return an example of an operation's JSON body, None if it has no body."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return None if content is None else next(iter(content["examples"].values()))["value"]


def test_an_unknown_field_of_any_body_is_refused(admin: Client, sf: Cluster) -> None:
    tried = 0
    for method, path, operation in operations():
        body = example(operation)
        if body is None or set(body) == {"records"} or path in NOT_ADMITTED:
            continue
        response = admin.generic(
            method.upper(), address(path), json.dumps(body | {"misspelt": 1}), content_type=JSON
        )
        assert response.status_code == 422, (method, path)
        assert "misspelt" in response.json()["fields"], (method, path)
        tried += 1
    assert tried > 40


def test_a_typing_error_starts_no_plan(admin: Client, sf: Cluster) -> None:
    """`algoritm` is not the default algorithm."""
    response = post(admin, "/clusters/sf/proposals", {"algoritm": "annealing"})
    assert response.status_code == 422
    assert not sf.proposals.exists()


def test_an_unknown_query_parameter_is_refused_everywhere(admin: Client) -> None:
    for method, path, _ in operations():
        response = admin.generic(method.upper(), f"{address(path)}?misspelt=1", content_type=JSON)
        assert response.status_code == 422, (method, path)
        assert response.json()["code"] == "unknown_parameter", (method, path)
        assert list(response.json()["fields"]) == ["misspelt"]


WRONG = {"integer": ("0.5", "-1", "x", "9" * 13), "enum": ("nowhere",)}


def test_wrong_values_of_declared_parameters_are_refused(admin: Client, sf: Cluster) -> None:
    """Every limit, page, order and choice of the lists that can be read without another row."""
    tried = set()
    for path in ("/clusters", "/clusters/sf/queries", "/clusters/sf/streams", "/lab/runs",
                 "/clusters/sf/proposals", "/clusters/sf/decisions", "/audit",
                 "/clusters/sf/versions", "/clusters/sf/ledger", "/attached/jobs",
                 "/clusters/sf/comparisons", "/clusters/sf/dead-letters"):  # fmt: skip
        declared = SCHEMA["paths"]["/api/v1" + path.replace("/sf", "/{slug}")]["get"]["parameters"]
        for item in declared:
            schema = item["schema"]
            kind = "enum" if "enum" in schema else schema.get("type")
            for value in WRONG.get(kind, ()) if item["in"] == "query" else ():
                response = get(admin, f"{path}?{item['name']}={value}")
                assert response.status_code == 422, (path, item["name"], value)
                assert list(response.json()["fields"]) == [item["name"]]
                tried.add(item["name"])
    assert {"limit", "order", "state", "split", "node"} <= tried


@pytest.mark.parametrize("query", ["limit=x", "limit=0", "cursor=x&limit=-1"])
def test_a_wrong_value_is_refused_beside_what_replaces_it(
    admin: Client, sf: Cluster, query: str
) -> None:
    assert get(admin, f"/clusters/sf/streams?{query}").status_code == 422


def test_pages_refuse_wrong_values_too(sf: Cluster, operator: Actor) -> None:
    browser = Client()
    browser.force_login(user_of(operator))
    for query in ("order=nowhere", "page=x", "state=nowhere", "node=x"):
        assert browser.get(f"/clusters/sf/queries/?{query}").status_code == 422, query
    assert browser.get("/clusters/sf/queries/?order=&page=&node=").status_code == 200


@pytest.fixture
def one_cluster(sf: Cluster, operator: Actor) -> Actor:
    """An admin of one of two clusters."""
    Cluster.objects.create(slug="nyc", name="NYC")
    return granted("admin", sf)


@pytest.mark.nightly("requests")
def test_a_foreign_cluster_is_an_unknown_one_on_pages(
    one_cluster: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By status, body and SQL statements, on every page of a cluster."""
    # The use of a session is noted once, however long the test takes.
    monkeypatch.setattr("controlplane.access.logins.login_sessions.SEEN_GRAIN", timedelta(days=1))
    browser = Client()
    browser.force_login(user_of(one_cluster))
    of_cluster = [page for page in pages() if page.path.startswith("/clusters/<slug:slug>")]
    assert len(of_cluster) > 160
    for page in of_cluster:
        path = re.sub(r"<(?:\w+:)?(\w+)>", lambda m: {"slug": "%s"}.get(m[1], "1"), page.path)
        _compare(browser, page.method, path, None)


def test_a_foreign_cluster_is_an_unknown_one(one_cluster: Actor) -> None:
    """By status, body and SQL statements, in every operation."""
    script = scripted(one_cluster)
    get(script, "/me")  # The first use of a token is noted.
    for method, path, operation in operations():
        if path.startswith("/api/v1/clusters/{slug}"):
            is_named = method == "delete" and path.endswith(("{slug}", "{stream}"))
            needed = "?confirm=x" if is_named else ""
            _compare(script, method, address(path, "%s") + needed, example(operation) or {})


def _compare(client: Client, method: str, path: str, body: Any) -> None:
    foreign = _answer(client, method, path, "nyc", body)
    # A wrong method is refused before a look-up.
    if foreign[0] != 405:
        assert foreign[0] == 404, (method, path, foreign)
        assert foreign == _answer(client, method, path, "xyz", body), (method, path)


def _answer(client: Client, method: str, path: str, slug: str, body: Any) -> tuple[int, str, int]:
    data = b"" if body is None else json.dumps(body)
    with CaptureQueriesContext(connection) as statements:
        response = client.generic(method.upper(), path % slug, data, content_type=JSON)
    text = re.sub(r'"request": "\w+"', "", response.content.decode().replace(slug, "?"))
    # A CSRF token of a page is random.
    text = re.sub(r'(?:nonce|csrfmiddlewaretoken" value|X-CSRFToken)\W+[^"\']*', "", text)
    return response.status_code, text, len(statements)
