"""The API's description: every operation says what it is, shows a body, and tells its refusals."""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from ninja import Schema
from pydantic import create_model

from controlplane.access.roles import Actor
from controlplane.api import api
from controlplane.api.common.examples import BODIES
from controlplane.api.common.openapi import DocumentedAPI, SchemaNameError
from controlplane.api.common.strictness import require_strict_bodies
from controlplane.models import Cluster
from tests.controlplane.api.callers import scripted

MODULES = (
    "common.schemas",
    "proposal_comments",
    "clusters.routes",
    "clusters.lifecycle",
    "grants",
    "clusters.shedding",
    "queries.schemas",
    "queries.sinks",
    "clusters.health",
    "streams.records",
    "streams.schemas",
    "streams.admission",
    "integrations.attached",
    "comparisons",
    "proposals",
    "queries.edges",
    "policies",
    "access",
    "integrations.webhooks",
)
METHODS = ("get", "post", "put", "patch", "delete")


SCHEMA = api.get_openapi_schema(path_prefix="api/v1/")


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, found in SCHEMA["paths"].items():
        for method in METHODS:
            if method in found:
                yield method, path, found[method]


ALL = list(operations())


def test_an_operation_says_what_it_does() -> None:
    """A sentence of its own, and a tag that the description explains."""
    known = {tag["name"] for tag in SCHEMA["tags"]}
    for method, path, operation in ALL:
        summary = operation["summary"]
        assert 5 < len(summary) < 120, (method, path)
        assert "\n" not in summary, (method, path)
        assert set(operation["tags"]) <= known, (method, path)


def test_a_body_is_shown() -> None:
    """Who reads the description can send what it shows."""
    for method, path, operation in ALL:
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            assert content["application/json"].get("examples"), (method, path)


def test_refusals_are_told() -> None:
    """Each as problem details; what changes something tells of conflicts, too."""
    for method, path, operation in ALL:
        wanted = {400, 401, 403, 422, 429, 503} | ({404} if "{" in path else set())
        wanted |= set() if method == "get" else {409}
        wanted |= {413} if "requestBody" in operation else set()
        told = operation["responses"]
        assert wanted <= set(told), (method, path)
        for status in wanted:
            assert "application/problem+json" in told[status]["content"], (method, path, status)
        assert (304 in told) == (method == "get"), (method, path)


def test_two_schemas_of_one_name_are_refused() -> None:
    """The second one would replace the first in the document, and lists would breach it."""

    class Row(Schema):
        number: int

    def one(request: HttpRequest) -> None:
        del request

    other = create_model("Row", __base__=Schema, text=(str, ...))
    doubled = DocumentedAPI(urls_namespace="doubled")
    doubled.get("/a", response=list[Row], operation_id="a")(one)
    doubled.get("/b", response=list[other], operation_id="b")(one)  # type: ignore[valid-type]
    with pytest.raises(SchemaNameError) as error:
        doubled.get_openapi_schema(path_prefix="")
    assert error.value.name == "Row"


def test_the_document_is_made_once() -> None:
    """Per prefix of the addresses: it takes a second, and every page of the reference loads it."""
    assert api.get_openapi_schema(path_prefix="api/v1/") is SCHEMA
    assert "/x/clusters" in api.get_openapi_schema(path_prefix="/x/")["paths"]


def test_a_body_that_ignores_fields_stops_the_start() -> None:
    class Lax(Schema):
        number: int

    def create(request: HttpRequest, body: list[Lax]) -> None:
        del request, body

    lax = DocumentedAPI(urls_namespace="lax")
    lax.post("/a")(create)
    with pytest.raises(ImproperlyConfigured):
        require_strict_bodies(lax)


@pytest.mark.nightly("requests")
def test_a_client_is_generated_without_a_warning(tmp_path: Path) -> None:
    """By openapi-python-client: every operation and every schema is in it."""
    document, settings = tmp_path / "openapi.json", tmp_path / "settings.yaml"
    document.write_text(json.dumps(SCHEMA))
    settings.write_text("post_hooks: []\n")
    program = Path(sys.executable).with_name("openapi-python-client")
    run = subprocess.run(
        [program, "generate", "--path", document, "--config", settings, "--meta", "none",
         "--output-path", tmp_path / "client"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "arning" not in run.stdout + run.stderr
    made = {file.stem for file in (tmp_path / "client" / "api").glob("*/*.py")} - {"__init__"}
    assert len(made) == len(ALL)


def test_examples_are_of_their_schemas() -> None:
    """Each example passes the checks that the body it stands for would pass."""
    paths = [*(f"controlplane.api.{name}" for name in MODULES), "controlplane.lab.api"]
    modules = [import_module(path) for path in paths]
    for name in set(BODIES) - {"records"}:
        shape = next(getattr(module, name) for module in modules if hasattr(module, name))
        for example in BODIES[name].values():
            shape.model_validate(example)


@pytest.mark.django_db
def test_a_malformed_body_has_a_documented_code(operator: Actor, sf: Cluster) -> None:
    """Of each operation with a JSON body; the fault is in data, as documented."""
    client = scripted(operator)
    refused = client.post("/api/v1/clusters/sf/queries", b"{", content_type="application/json")
    documented = api.get_openapi_schema()["paths"]["/api/v1/clusters/{slug}/queries"]["post"]
    content = documented["responses"][400]["content"]["application/problem+json"]
    assert refused.json()["code"] in content["examples"]
    assert set(refused.json()["data"]) == set(content["examples"]["bad_json"]["value"]["data"])
