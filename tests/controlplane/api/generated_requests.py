"""Requests with extreme values, generated from the API's OpenAPI document.

Each names an operation with values that exist, in which one value is replaced by an extreme one of
its or another type, or several are, or the body is none that an operation expects.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import quote, urlencode

from controlplane.api import api
from controlplane.models import Cluster
from tests.support import extremes
from tests.support.api_world import address_of

JSON: Final = "application/json"
_TYPES: Final = (
    "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
    "application/octet-stream", "application/x-ndjson", "text/csv", "application/json; charset=x",
    "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet",
)  # fmt: skip
# How deep in a body values are replaced.
_DEPTH: Final = 5


@dataclass(frozen=True)
class Request:
    """A request of an operation by a role."""

    operation: str
    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON
    role: str = "admin"


@dataclass(frozen=True)
class _Operation:
    name: str
    method: str
    path: str
    parameters: tuple[Mapping[str, Any], ...]
    bodies: tuple[Any, ...]
    body_schema: Mapping[str, Any]

    @property
    def schemas(self) -> dict[str, Mapping[str, Any]]:
        """Return the schemas of the parameters by name."""
        return {str(row["name"]): row["schema"] for row in self.parameters}

    def names(self, where: str) -> list[str]:
        return [str(row["name"]) for row in self.parameters if row["in"] == where]


@cache
def document() -> Mapping[str, Any]:
    """Return the OpenAPI document as a client reads it."""
    text = json.dumps(api.get_openapi_schema(path_prefix="api/v1/"))
    document: Mapping[str, Any] = json.loads(text)
    return document


def operations() -> list[_Operation]:
    """Return all operations, each with bodies that reach its service."""
    return [
        _Operation(
            f"{method.upper()} {path}", method, path, tuple(operation["parameters"]),
            tuple(bodies_of(operation)), _content(operation).get("schema", {}),
        )
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    ]  # fmt: skip


def bodies_of(operation: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the example bodies of an operation, with every declared field in one of them."""
    content = _content(operation)
    if not content:
        return
    examples = [deepcopy(row["value"]) for row in content.get("examples", {}).values()]
    fields = properties(content["schema"])
    if examples and fields:
        missing = {name: None for name in fields if not any(name in row for row in examples)}
        examples[0] |= missing
    yield from examples


def _content(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    content: Mapping[str, Any] = operation.get("requestBody", {}).get("content", {}).get(JSON, {})
    return content


def schema_of(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of the JSON body of an operation, {} without one."""
    schema: Mapping[str, Any] = _content(operation).get("schema", {})
    options = [schema, *schema.get("anyOf", ())]
    named = [row["$ref"].rpartition("/")[2] for row in options if "$ref" in row]
    return document()["components"]["schemas"][named[0]] if named else schema


def schema_at(schema: Mapping[str, Any], path: tuple[Any, ...]) -> Mapping[str, Any]:
    """Return the schema of the value at a path of a body, {} for an undeclared one."""
    for key in path:
        options = [schema, *schema.get("anyOf", ())]
        inner: Mapping[str, Any] = next((row["items"] for row in options if "items" in row), {})
        schema = inner if isinstance(key, int) else properties(schema).get(key, {})
    return schema


def _fitting(schema: Mapping[str, Any], chance: random.Random) -> Sequence[Any]:
    """Return the extreme values of a schema's type, often; () for those of any type."""
    if chance.random() < 0.4:
        return ()
    options = [schema, *schema.get("anyOf", ())]
    named = [extremes.BY_TYPE.get(row.get("format", row.get("type", "")), ()) for row in options]
    return [value for values in named for value in values]


def properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields that a schema or one of its alternatives declares."""
    for option in (schema, *schema.get("anyOf", ())):
        if "$ref" in option:
            return properties(document()["components"]["schemas"][option["$ref"].split("/")[-1]])
        if "properties" in option:
            fields: Mapping[str, Any] = option["properties"]
            return fields
    return {}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in a body."""
    yield path
    if len(path) < _DEPTH and isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield from places(value[key], (*path, key))


def replaced(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a body with another value at a path."""
    if not path:
        return value
    changed = deepcopy(body)
    row = changed
    for key in path[:-1]:
        row = row[key]
    row[path[-1]] = value
    return changed


def requests(cluster: Cluster, count: int, seed: int = 0) -> list[Request]:
    """Return so many generated requests, the same for every run; every operation has its share."""
    chance = random.Random(seed)
    known = operations()
    makers = [_maker(operation, cluster, chance) for operation in known]
    return [next(makers[number % len(makers)]) for number in range(count)]


def _maker(operation: _Operation, cluster: Cluster, chance: random.Random) -> Iterator[Request]:
    """Yield requests of an operation without end."""
    values = dict(_parts(operation, cluster))
    inner = [("query", name) for name in operation.names("query")]
    if operation.bodies:
        inner += [("body", "")] * 6
    if operation.method != "get":
        inner += [("raw", "")]
    outer = [("path", name) for name in operation.names("path")] or [("query", "unknown")]
    while True:
        # Seldom the path, as its row is what the rest is about; else one value, or up to four.
        slots = inner if inner and chance.random() < 0.85 else outer
        chosen = chance.sample(slots, min(len(slots), chance.choice((1, 1, 1, 2, 4))))
        if "stream" in values and chance.random() < 0.5:
            values["stream"] = chance.choice(("s0", "orders-north"))
        yield _made(operation, values, chosen, chance)


def _parts(operation: _Operation, cluster: Cluster) -> Iterator[tuple[str, str]]:
    given = address_of(operation.path, cluster).split("/")
    for name, value in zip(operation.path.split("/"), given, strict=True):
        if name.startswith("{"):
            yield name.strip("{}"), value


def _made(
    operation: _Operation,
    values: Mapping[str, str],
    slots: Sequence[tuple[str, str]],
    chance: random.Random,
) -> Request:
    others = [name for name in operation.names("query") if chance.random() < 0.2]
    query = {name: chance.choice(extremes.TEXTS) for name in others}
    parts = {name: quote(value, safe="") for name, value in values.items()}
    for kind, name in slots:
        if kind == "path":
            text = quote(chance.choice(extremes.TEXTS)[:2_000], safe="")
            parts[name] = chance.choice((text, text, text, chance.choice(extremes.BAD_BYTES)))
        elif kind == "query":
            fitting = [str(value) for value in _fitting(operation.schemas.get(name, {}), chance)]
            query[name] = chance.choice(fitting or extremes.TEXTS)[:4_000]
    path = operation.path
    for name, text in parts.items():
        path = path.replace(f"{{{name}}}", text)
    if query:
        path += f"?{urlencode(query, quote_via=quote)}"
    role = chance.choice(("admin", "admin", "operator", "viewer"))
    if any(kind == "raw" for kind, _ in slots):
        content_type = chance.choice((JSON, JSON, *_TYPES))
        body = chance.choice(extremes.BODIES)
        return Request(operation.name, operation.method, path, body, content_type, role)
    changes = sum(kind == "body" for kind, _ in slots)
    body = _body(operation, changes, chance) if operation.bodies else b""
    return Request(operation.name, operation.method, path, body, JSON, role)


def _body(operation: _Operation, changes: int, chance: random.Random) -> bytes:
    """Return an example of a body with so many of its values replaced."""
    body = chance.choice(operation.bodies)
    for _ in range(changes):
        place = chance.choice(list(places(body)))
        fitting = _fitting(schema_at(operation.body_schema, place), chance)
        body = replaced(body, place, chance.choice(fitting or extremes.VALUES))
    return extremes.json_text(body)
