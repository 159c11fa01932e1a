"""The API's description: every operation says what it is, shows a body, and tells its refusals."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from controlplane.api import api
from controlplane.api.common.examples import BODIES

MODULES = (
    "common.schemas",
    "clusters.routes",
    "clusters.shedding",
    "queries.schemas",
    "clusters.health",
    "streams.records",
    "streams.schemas",
    "streams.admission",
    "lab",
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
IDS = [f"{method} {path}" for method, path, _ in ALL]
every = pytest.mark.parametrize(("method", "path", "operation"), ALL, ids=IDS)


@every
def test_an_operation_says_what_it_does(method: str, path: str, operation: dict[str, Any]) -> None:
    """A sentence of its own, and a tag that the description explains."""
    assert 5 < len(operation["summary"]) < 120
    assert "\n" not in operation["summary"]
    known = {tag["name"] for tag in SCHEMA["tags"]}
    assert set(operation["tags"]) <= known


@every
def test_a_body_is_shown(method: str, path: str, operation: dict[str, Any]) -> None:
    """Who reads the description can send what it shows."""
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        assert content["application/json"].get("examples"), f"no example for {method} {path}"


@every
def test_refusals_are_told(method: str, path: str, operation: dict[str, Any]) -> None:
    """Each as problem details; what changes something tells of conflicts, too."""
    wanted = {401, 403, 422, 503} | ({404} if "{" in path else set())
    wanted |= set() if method == "get" else {409}
    told = operation["responses"]
    assert wanted <= set(told)
    for status in wanted:
        assert "application/problem+json" in told[status]["content"]


def test_examples_are_of_their_schemas() -> None:
    """Each example passes the checks that the body it stands for would pass."""
    modules = [import_module(f"controlplane.api.{name}") for name in MODULES]
    for name in set(BODIES) - {"records"}:
        shape = next(getattr(module, name) for module in modules if hasattr(module, name))
        for example in BODIES[name].values():
            shape.model_validate(example)
