"""The operations of an OpenAPI document as commands: name, arguments, options, response."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from controlplane.cli.operations.names import name_of, option_of
from controlplane.cli.operations.schemas import Schema, is_flat, properties_of, resolved
from controlplane.plans.proposal_states import SAID

JSON: Final = "application/json"
# Ids of proposals are unique in a Weir: these commands look for the cluster themselves.
_OF_ANY_CLUSTER: Final = {f"proposals {verb.path}" for verb in SAID}


@dataclass(frozen=True)
class RequestField:
    """A value of a request: part of the path, of the query string or of the JSON body.

    `option`: its name for the user. `is_argument`: given by its place instead of its name.
    """

    name: str
    place: str
    schema: Schema
    option: str
    is_required: bool
    is_argument: bool

    @property
    def dest(self) -> str:
        """Return the name of the attribute with its value."""
        return f"{self.place} {self.name}"


@dataclass(frozen=True)
class Operation:
    """An operation of the API with its command, and the field that is an argument of it.

    `entry`: what the document has of it. `schemas`: those that it refers to.
    """

    command: str
    argument: str
    method: str
    path: str
    entry: Mapping[str, Any]
    schemas: Schema

    @property
    def finds_cluster(self) -> bool:
        """Return True if the path has a cluster that the user does not name."""
        return self.command in _OF_ANY_CLUSTER

    @property
    def about(self) -> str:
        """Return what the operation does, in all sentences of the document."""
        return str(self.entry.get("description") or self.entry["summary"])

    @property
    def content(self) -> Mapping[str, Any]:
        """Return the bodies by content type."""
        return dict(self.entry.get("requestBody", {}).get("content", {}))

    @cached_property
    def body(self) -> Schema:
        """Return the schema of the JSON body, {} without one."""
        return resolved(self.content.get(JSON, {}).get("schema", {}), self.schemas)

    @cached_property
    def is_file(self) -> bool:
        """Return True if the body as a whole comes from a file: options cannot express it."""
        parts = properties_of(self.body, self.schemas)
        needed = [parts[name] for name in self.body.get("required", ())]
        return len(self.content) > 1 or not all(is_flat(part, self.schemas) for part in needed)

    @cached_property
    def answers(self) -> Mapping[str, Any]:
        """Return the responses without an error by content type."""
        responses = self.entry["responses"].items()
        done = next(value for status, value in responses if str(status) < "3")
        return dict(done.get("content", {}))

    @property
    def answer(self) -> Schema:
        """Return the schema of a JSON response, {} without one."""
        return resolved(self.answers.get(JSON, {}).get("schema", {}), self.schemas)

    @cached_property
    def fields(self) -> tuple[RequestField, ...]:
        """Return the values of a request, those of the path first."""
        parameters = [
            self._field(item["name"], item["in"], item["schema"] | _description(item),
                        is_required=item["required"])
            for item in self.entry["parameters"] if item["in"] in ("path", "query")
        ]  # fmt: skip
        parts = {} if self.is_file else properties_of(self.body, self.schemas)
        body = [
            self._field(name, "body", part, is_required=name in self.body.get("required", ()))
            for name, part in parts.items()
            if part.get("type") == "object" or is_flat(part, self.schemas)
        ]
        return tuple(sorted([*parameters, *body], key=lambda field: field.place != "path"))

    def _field(self, name: str, place: str, schema: Schema, *, is_required: bool) -> RequestField:
        is_argument = place == "path" or name == self.argument
        schema, option = resolved(schema, self.schemas), option_of(self.command, name)
        return RequestField(name, place, schema, option, is_required, is_argument)


def operations_of(document: Mapping[str, Any]) -> Iterator[Operation]:
    """Yield the operations of a document that have a command."""
    schemas = document["components"]["schemas"]
    for address, methods in document["paths"].items():
        path = address.removeprefix("/api/v1")
        for method, entry in methods.items():
            if name := name_of(entry["operationId"], method, path):
                command, _, argument = name.rstrip("]").partition(" [")
                yield Operation(command, argument, method.upper(), path, entry, schemas)


def _description(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": item["description"]} if "description" in item else {}
