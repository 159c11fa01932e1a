"""A body without a required field may be left out: it is an empty object."""

from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.controlplane.api.callers import JSON, scripted
from tests.controlplane.api.generated_requests import document, schema_of
from tests.support.api_world import address_of, rich_cluster
from tests.support.cluster import actor

pytestmark = pytest.mark.nightly("requests")


@pytest.fixture
def world(db: None, redis_url: str) -> Cluster:
    """A cluster with a row of every kind."""
    return rich_cluster(actor("operator"))


def optional_bodies() -> list[tuple[str, str, bool]]:
    """Return method, path, and whether a body is required, of bodies that require no field."""
    return [
        (method, path, operation["requestBody"]["required"])
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
        if (schema := schema_of(operation)) and not schema.get("required")
        and "properties" in schema
    ]  # fmt: skip


def test_a_body_that_requires_nothing_may_be_left_out(world: Cluster) -> None:
    """Every such operation answers as to an empty object."""
    found = optional_bodies()
    assert ("post", "/api/v1/clusters/{slug}/start", False) in found
    assert not [path for _, path, is_required in found if is_required]
    script = scripted(actor("admin", "the-admin"))
    for method, path, _ in found:
        address = address_of(path, world)
        assert answered(script, method, address, b"") == answered(script, method, address, b"{}")


def answered(script: Client, method: str, path: str, body: bytes) -> tuple[int, Any]:
    """Return status and fields of an answer, whose effects are reverted."""
    with transaction.atomic():
        answer = script.generic(method.upper(), path, body, content_type=JSON)
        transaction.set_rollback(True)
    assert answer.status_code < 500
    return answer.status_code, answer.json().get("fields") if answer.status_code >= 400 else None


def test_a_cluster_starts_without_a_body(operator: Actor, sf: Cluster) -> None:
    answer = scripted(operator).generic("POST", "/api/v1/clusters/sf/start")
    assert (answer.status_code, answer.json()["desired"]) == (200, "running")
