"""Policies, blackouts, exclusions and decisions over HTTP."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.api.application import api
from controlplane.api.common.examples import BODIES
from controlplane.models import Cluster, Decision
from tests.controlplane.api.callers import scripted
from tests.support.cluster import actor

pytestmark = pytest.mark.django_db(transaction=True)
BASE = "/api/v1/clusters/sf"


@pytest.fixture
def script(sf: Cluster) -> Client:
    """A client with an admin's token."""
    return scripted(actor("admin"))


def send(client: Client, verb: str, path: str, body: Any) -> Any:
    return getattr(client, verb)(path, json.dumps(body), content_type="application/json")


def test_the_policy_is_read_and_patched(script: Client) -> None:
    told = script.get(f"{BASE}/policy").json()
    assert told["watch"] == "recommend"
    assert told["auto_kinds"] == ["admission", "shedding"]
    assert told["summary"].startswith("New queries are placed at once.")
    body = {"watch": "act", "auto_from": "22:00", "auto_until": "05:00", "reason": "at night"}
    told = send(script, "patch", f"{BASE}/policy", body).json()
    assert (told["watch"], told["auto_from"], told["cooldown_s"]) == ("act", "22:00:00", 600)
    told = send(script, "patch", f"{BASE}/policy", {"auto_from": None, "auto_until": None}).json()
    assert (told["watch"], told["auto_from"]) == ("act", None), "what is left out stays"


def test_blackouts_are_added_listed_and_removed(script: Client) -> None:
    body = {"cron": "* * * * *", "minutes": 2, "reason": "always"}
    answer = send(script, "post", f"{BASE}/blackouts", body)
    assert answer.status_code == 201
    (told,) = script.get(f"{BASE}/blackouts").json()
    assert (told["description"], told["owner"]) == ("Every minute", "a-admin")
    assert told["until"] is not None, "it holds now"
    assert script.delete(f"{BASE}/blackouts/{told['id']}").status_code == 204
    assert script.delete(f"{BASE}/blackouts/{told['id']}").status_code == 404
    assert script.get(f"{BASE}/blackouts").json() == []
    answer = send(script, "post", f"{BASE}/blackouts", {"cron": "x", "minutes": 1, "reason": "x"})
    assert list(answer.json()["fields"]) == ["cron"]


def test_exclusions_are_added_listed_and_removed(script: Client) -> None:
    until = (timezone.now() + timedelta(hours=1)).isoformat()
    body = {"kind": "node", "subject": "node 1", "reason": "repair", "expires_at": until}
    assert send(script, "post", f"{BASE}/exclusions", body).status_code == 201
    (told,) = script.get(f"{BASE}/exclusions").json()
    assert (told["kind"], told["subject"], told["owner"]) == ("node", "node 1", "a-admin")
    assert script.delete(f"{BASE}/exclusions/{told['id']}?reason=done").status_code == 204
    assert script.get(f"{BASE}/exclusions").json() == []
    answer = send(script, "post", f"{BASE}/exclusions", body | {"subject": "ghost"})
    assert list(answer.json()["fields"]) == ["subject"]


def test_decisions_are_listed_with_filters(script: Client, sf: Cluster) -> None:
    now = timezone.now()
    for at, (loop, code) in enumerate((("latency", "within"), ("imbalance", "cooldown")) * 2):
        moment = now + timedelta(seconds=at)
        Decision.objects.create(
            cluster=sf, loop=loop, code=code, text="told", number=at, limit=9, unit="s",
            first_at=moment, last_at=moment,
        )  # fmt: skip
    told = script.get(f"{BASE}/decisions").json()["decisions"]
    assert [one["number"] for one in told] == [3, 2, 1, 0]
    assert told[0]["about"] == "The cool-down after the last proposal of the monitors is not over"
    answer = script.get(f"{BASE}/decisions?loop=latency&limit=1")
    first = answer.json()
    assert [one["number"] for one in first["decisions"]] == [2]
    rest = script.get(f"{BASE}/decisions?loop=latency&limit=1&cursor={first['next']}").json()
    assert [one["number"] for one in rest["decisions"]] == [0]
    assert rest["next"] is None
    watch = script.get(f"{BASE}/watch").json()
    assert [(one["loop"], one["number"], one["unit"]) for one in watch] == [
        ("latency", 2, "s"), ("imbalance", 3, "s"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "verb", "examples"),
    [
        ("policy", "patch", BODIES["PolicyIn"]),
        ("blackouts", "post", BODIES["BlackoutIn"]),
        ("exclusions", "post", BODIES["ExclusionIn"]),
    ],
)
def test_the_examples_of_the_documentation_are_taken(
    script: Client, path: str, verb: str, examples: dict[str, dict[str, Any]]
) -> None:
    """As they stand there, but for an end that is near enough."""
    schema = json.loads(json.dumps(api.get_openapi_schema(), default=str))
    operation = schema["paths"][f"/api/v1/clusters/{{slug}}/{path}"][verb]
    shown = operation["requestBody"]["content"]["application/json"]["examples"]
    assert {name: one["value"] for name, one in shown.items()} == examples
    soon = (timezone.now() + timedelta(days=1)).isoformat()
    for body in examples.values():
        near = body | ({"expires_at": soon} if "expires_at" in body else {})
        assert send(script, verb, f"{BASE}/{path}", near).status_code in (200, 201)
