"""The API's doors, and what it answers to what it refuses."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from controlplane.access import tokens
from controlplane.access.roles import Actor
from controlplane.models import ApiToken, Cluster, Query
from tests.controlplane.api.callers import user_of
from tests.support.cluster import placed
from tests.support.texts import SUMMARY_JSON

pytestmark = pytest.mark.django_db(transaction=True)
QUERIES = "/api/v1/clusters/sf/queries"
GOOD = {"name": "q", "streams": ["s0", "s1"], "text": SUMMARY_JSON}


def post(client: Client, path: str, body: Any, **headers: str) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json", headers=headers)


def test_without_login_nothing_is_told(sf: Cluster, client: Client) -> None:
    """401 with the way in."""
    answer = client.get("/api/v1/clusters")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"
    assert answer["Content-Type"] == "application/problem+json"
    told = answer.json()
    assert (told["type"], told["status"]) == ("urn:weir:problem:unauthorized", 401)
    assert {"title", "detail", "instance", "code", "fields", "rows", "data"} <= set(told)


def test_a_token_needs_no_csrf(script: Client, sf: Cluster) -> None:
    """A script has no cookie that another site could abuse."""
    answer = post(script, QUERIES, GOOD)
    assert answer.status_code == 201
    assert answer.json()["state"] == "pending"
    assert answer.json()["streams"] == ["s0", "s1"]


def test_a_session_without_csrf_token_may_not_write(operator: Actor, sf: Cluster) -> None:
    """A foreign page must not submit in an operator's name."""
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(user_of(operator))
    assert browser.get(QUERIES).status_code == 200
    assert post(browser, QUERIES, GOOD).status_code == 403
    assert not Query.objects.exists()
    # The token comes with any page that has a form.
    browser.get("/account/")
    token = browser.cookies["csrftoken"].value
    assert post(browser, QUERIES, GOOD, **{"x-csrftoken": token}).status_code == 201


@pytest.mark.parametrize("spoil", ["expired", "inactive", "wrong"])
def test_a_token_that_does_not_hold_is_refused(operator: Actor, sf: Cluster, spoil: str) -> None:
    """Expiry and switching a user off work at once."""
    headers = {"authorization": f"Bearer {tokens.create(user_of(operator), 'test')}"}
    if spoil == "expired":
        ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    elif spoil == "inactive":
        User.objects.update(is_active=False)
    else:
        headers["authorization"] += "x"
    assert Client(headers=headers).get(QUERIES).status_code == 401


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"streams": ["nowhere"]}, "streams"),
        ({"streams": []}, "streams"),
        ({"streams": "s0"}, "streams"),
        ({"text": SUMMARY_JSON | {"window_s": 0}}, "text"),
        ({"text": SUMMARY_JSON | {"window_s": 604_801}}, "text"),
        ({"text": SUMMARY_JSON | {"window_s": "60"}}, "text"),
        ({"text": SUMMARY_JSON | {"aggregates": {"n": "mean(colour)"}}}, "text"),
        ({"text": None}, "text"),
        ({"name": "x" * 101}, "name"),
        ({"name": None}, "name"),
        ({"ends_at": "2020-01-01T00:00:00Z"}, "ends_at"),
    ],
)
def test_a_bad_value_is_told_by_field_and_leaves_nothing(
    script: Client, sf: Cluster, changed: dict[str, Any], field: str
) -> None:
    """One shape of refusal, whoever refuses."""
    answer = post(script, QUERIES, GOOD | changed)
    assert answer.status_code == 422
    told = answer.json()["fields"]
    assert [name.partition(".")[0] for name in told] == [field]
    assert all(isinstance(text, str) for texts in told.values() for text in texts)
    assert not Query.objects.exists()


def test_a_body_that_is_no_json_is_refused(script: Client, sf: Cluster) -> None:
    """Also in the one shape."""
    answer = script.post(QUERIES, "{", content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["code"] == "bad_json"
    assert answer.json()["data"] == {"fault": "syntax", "line": 1, "column": 2}


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("[" * 200_000, "depth"),
        ('{"name": "a", "name": "b"}', "name"),
        ('{"retention_s": 1e999}', "number"),
        ('{"retention_s": ' + "9" * 5000 + "}", "number"),
    ],
)
def test_a_body_of_json_is_bounded_and_strict(
    script: Client, sf: Cluster, body: str, fault: str
) -> None:
    answer = script.post(QUERIES, body, content_type="application/json")
    assert answer.status_code == 400
    problem = answer.json()
    assert (problem["code"], problem["data"]["fault"]) == ("bad_json", fault)


def test_a_query_is_read_and_ended_by_name(script: Client, operator: Actor, sf: Cluster) -> None:
    """DELETE ends it; a second one finds it ended and is content."""
    placed(operator, sf, {"q": ["s0"]})
    got = script.get(f"{QUERIES}/q").json()
    assert (got["state"], got["node"]) == ("running", 0)
    assert script.delete(f"{QUERIES}/q").json()["state"] == "ending"
    assert script.delete(f"{QUERIES}/q").status_code == 200
    assert script.get(f"{QUERIES}/nobody").status_code == 404
    assert script.get(f"{QUERIES}/q/results").json() == {"windows": [], "total": None, "next": None}


def test_ending_many_tells_how_many(script: Client, operator: Actor, sf: Cluster) -> None:
    """And refuses names that do not live."""
    placed(operator, sf, {"a": ["s0"], "b": ["s0"]})
    assert post(script, f"{QUERIES}/end", {"names": ["a", "b"]}).json() == {"count": 2}
    answer = post(script, f"{QUERIES}/end", {"names": ["nobody"]})
    assert list(answer.json()["fields"]) == ["names"]


def test_streams_are_registered_once_and_brought_up_to_date(script: Client, sf: Cluster) -> None:
    """A producer registers at every start."""
    path = "/api/v1/clusters/sf/streams"
    schema = {"columns": [{"name": "word", "type": "string"}]}
    stream = {"name": "tile", "title": "Mission", "declared_rate": 2, "schema": schema}
    body: dict[str, Any] = {"streams": [stream]}
    first = post(script, path, body).json()[0]
    sf.refresh_from_db()
    version = sf.routing_version
    body["streams"][0]["title"] = "Mission Street"
    again = post(script, path, body).json()[0]
    assert (again["id"], again["title"]) == (first["id"], "Mission Street")
    sf.refresh_from_db()
    assert sf.routing_version == version
    assert script.get(path + "?q=mission").json()["total"] == 1


def test_a_node_capacity_must_be_a_number_above_zero(script: Client, sf: Cluster) -> None:
    """A capacity of zero would divide by zero everywhere."""
    path = "/api/v1/clusters/sf/nodes/0"

    def patch(body: dict[str, Any]) -> Any:
        return script.patch(path, json.dumps(body), content_type="application/json").json()

    assert patch({"capacity": 0})["fields"]["capacity"]
    assert patch({"capacity": 250})[0]["capacity"] == 250
    changed = patch({"active": False, "reason": "repair"})[0]
    assert (changed["capacity"], changed["active"]) == (250, False)
    assert patch({"colour": "red"})["code"] == "malformed"


def test_a_cluster_is_started_and_stopped(script: Client, sf: Cluster) -> None:
    """desired is what was asked; state stays what is seen."""
    assert post(script, "/api/v1/clusters/sf/start", {}).json()["desired"] == "running"
    assert post(script, "/api/v1/clusters/sf/stop", {"reason": "fair"}).json()["state"] == "stopped"
    assert post(script, "/api/v1/clusters/nowhere/start", {}).status_code == 404


def test_the_documentation_is_behind_the_login(client: Client, operator: Actor) -> None:
    """What the API can do is not told to strangers."""
    assert client.get("/api/v1/docs").status_code == 302
    assert client.get("/api/v1/openapi.json").status_code == 302
    client.force_login(user_of(operator))
    assert client.get("/api/v1/docs").status_code == 200
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    assert "/api/v1/clusters/{slug}/queries" in paths


def test_pages_carry_the_security_headers(client: Client, db: None) -> None:
    """No inline script, no frame, no sniffing."""
    answer = client.get("/healthz")
    assert answer.content == b"ok"
    assert "script-src 'self';" in answer["Content-Security-Policy"]
    assert "base-uri 'none';" in answer["Content-Security-Policy"]
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "Strict-Transport-Security" not in answer
