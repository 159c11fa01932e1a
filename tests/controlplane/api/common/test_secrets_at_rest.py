"""A response with a new secret is not stored for repeated requests."""

import json
from typing import Any

import pytest
from django.test import Client

from controlplane.access import idempotency
from controlplane.api.application import api
from controlplane.models import ApiToken, AuditEntry, KeptAnswer, Webhook
from tests.controlplane.api.callers import post, user_of
from tests.support.cluster import actor, confirmed

pytestmark = pytest.mark.django_db(transaction=True)

KEY = {"idempotency-key": "3f1c"}
HOOK = {"name": "pager", "url": "https://8.8.8.8/hook", "kinds": ["alerts"]}
# The operations with a secret in their response, with a body.
SHOWN = {
    "/tokens": {"name": "script"},
    "/webhooks": HOOK,
    "/webhooks/{pk}/secret": None,
}
# Of PostgreSQL alone: tests/controlplane/results/sql/test_logins.py has its test.
LOGIN = "/clusters/{slug}/sql/login"


@pytest.fixture
def admin(redis_url: str) -> Client:
    """Return the session of an admin, as only sessions create tokens."""
    client = Client()
    client.force_login(user_of(actor("admin")))
    return confirmed(client)


def shows_secret(operation: Any, schemas: Any) -> bool:
    for answer in operation["responses"].values():
        for content in answer.get("content", {}).values():
            name = content["schema"].get("$ref", "").rpartition("/")[2]
            if "secret" in schemas.get(name, {}).get("properties", {}):
                return True
    return False


def test_every_operation_with_a_secret_is_tested() -> None:
    """A new one needs a row in SHOWN."""
    document = api.get_openapi_schema()
    schemas = document["components"]["schemas"]
    paths = {
        path.removeprefix("/api/v1")
        for path, operations in document["paths"].items()
        for operation in operations.values()
        if shows_secret(operation, schemas)
    }
    assert paths == {*SHOWN, LOGIN}


def stored_text() -> bytes:
    """Return the stored responses, and every audit entry."""
    entries = AuditEntry.objects.values_list("before", "after", "object")
    answers = (idempotency.body_of(answer) for answer in KeptAnswer.objects.all())
    return b"".join(answers) + json.dumps(list(entries)).encode()


@pytest.mark.parametrize("path", SHOWN)
def test_a_repeated_request_is_refused_without_the_secret(admin: Client, path: str) -> None:
    """It names what the first one created, and has no effect."""
    if "{pk}" in path:
        path = path.format(pk=post(admin, "/webhooks", HOOK).json()["webhook"]["id"])
    first, second = (post(admin, path, SHOWN.get(path), **KEY) for _ in range(2))
    assert first.status_code in {200, 201}, first.content
    values = first.json()
    secret = values.pop("secret")
    assert (second.status_code, second.json()["code"]) == (409, "secret_not_repeated")
    assert second.json()["data"] == values
    assert secret.encode() not in stored_text()
    assert ApiToken.objects.count() + Webhook.objects.count() == 1


def test_the_audit_log_has_no_secret_of_a_webhook_s_address(admin: Client) -> None:
    """Receivers such as chats have it in the path."""
    post(admin, "/webhooks", HOOK | {"url": "https://8.8.8.8/services/T0/pa55?token=w0rd"})
    assert b"8.8.8.8" in stored_text()
    assert b"pa55" not in stored_text()
    assert b"w0rd" not in stored_text()
