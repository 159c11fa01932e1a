"""Every address of Weir: operations of the API, and pages, with the methods that they accept."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.test import Client
from django.urls import get_resolver

from controlplane.api import api
from controlplane.cli.operations.names import short_id

# Django's admin and the API's own description have tests of their own.
APART = ("admin/", "api/v1/", "static/")


@dataclass(frozen=True)
class Address:
    """An address with a method; `name`: its key in the rules, `body`: JSON of an operation."""

    name: str
    method: str
    path: str
    body: str | None = None

    @property
    def is_of_cluster(self) -> bool:
        """Return True if the address names a cluster."""
        return "slug>" in self.path or "{slug}" in self.path


@cache
def operations() -> tuple[Address, ...]:
    """Return the operations of the API with an example of their body."""
    return tuple(_operations())


def _operations() -> Iterator[Address]:
    for path, methods in api.get_openapi_schema(path_prefix="api/v1/")["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            example: Any = None
            if content is not None:
                example = next(iter(content["examples"].values()))["value"]
            name = short_id(operation["operationId"])
            body = None if example is None else json.dumps(example)
            yield Address(name, method, path + _required_query(operation), body)


def _required_query(operation: dict[str, Any]) -> str:
    """Return the query of an address whose operation cannot be called without one."""
    parameters = operation.get("parameters", [])
    names = [row["name"] for row in parameters if row["in"] == "query" and row["required"]]
    return f"?{'&'.join(f'{name}=1' for name in names)}" if names else ""


def pages(patterns: Any = None, prefix: str = "") -> Iterator[Address]:
    """Yield the pages, each with GET and with POST."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(pattern.pattern)
        if route.startswith(APART):
            continue
        if hasattr(pattern, "url_patterns"):
            yield from pages(pattern.url_patterns, route)
        else:
            for method in ("get", "post"):
                yield Address(pattern.name or route, method, f"/{route}")


@cache
def accepts_get(path: str) -> bool:
    """Return False for a page that is an action: it only accepts POST."""
    # A wrong method is refused before a look-up: the parameters may name nothing.
    return Client().get(re.sub(r"<(?:\w+:)?(\w+)>", "1", path)).status_code != 405
