"""Execution of the commands of the OpenAPI document: request, following of long work, output."""

import sys
from argparse import Namespace
from typing import Any, Final

from controlplane.cli.client.api import JSON, Api, as_json, path_of
from controlplane.cli.client.connection import api_of
from controlplane.cli.codes import ExitCode
from controlplane.cli.input_files import bytes_of
from controlplane.cli.operations.derived import Operation
from controlplane.cli.operations.names import DEFAULTS
from controlplane.cli.operations.parsers import ALL
from controlplane.cli.operations.printing import print_value
from controlplane.cli.output import print_json
from controlplane.cli.proposal_output import path_of_proposal
from controlplane.cli.settings import settings_of
from controlplane.cli.waiting import WAITS, follow

FORMATS: Final = ("json", "ndjson", "csv", "arrow", "parquet")


def operate(given: Namespace) -> int:
    """Call the operation of a command, and print its response."""
    operation: Operation = given.operation
    api, method = api_of(given), operation.method
    path, query = _path(api, given), _query(given)
    body, kind = _body(given, query)
    answer = api.answer(method, path, query, body, kind)
    if answer.text and (len(operation.answers) > 1 or not answer.content_type.startswith(JSON)):
        # A file: the user has chosen its format.
        sys.stdout.write(answer.text)
        return ExitCode.DONE
    value = answer.value
    failed = operation.command == "audit verify" and not (value["intact"] or value["pending"])
    wait = WAITS.get(operation.command)
    if wait is not None and given.wait:
        places = {field.option: vars(given)[field.dest] for field in operation.fields}
        value = follow(api, wait, places | value, given.timeout)
        failed = wait.has_failed(value)
    if given.json:
        print_json(value)
    else:
        print_value(value, operation.answer, operation.schemas, is_change=method != "GET")
    return ExitCode.REFUSED if failed else ExitCode.DONE


def _path(api: Api, given: Namespace) -> str:
    operation: Operation = given.operation
    places = {field.name: field.option for field in operation.fields if field.place == "path"}
    values: dict[str, Any] = {
        field.option: vars(given).get(field.dest) for field in operation.fields
    }
    if operation.finds_cluster:
        values["cluster"], _ = path_of_proposal(api, values["id"])
    template = operation.path.format_map({name: f"{{{places[name]}}}" for name in places})
    return path_of(template, values)


def _query(given: Namespace) -> dict[str, Any]:
    own = _values(given, "query")
    query = {**DEFAULTS.get(given.operation.command, {}), **own}
    if getattr(given, "reverse", False):
        query["order"] = f"-{query['order']}" if query.get("order") else None
    return query


def _values(given: Namespace, place: str) -> dict[str, Any]:
    """Return the given values of the query string or the body by name."""
    values = {}
    for field in given.operation.fields:
        value = vars(given).get(field.dest) if field.place == place else None
        if value is None or value == []:
            continue
        if field.schema.get("type") == "object":
            value = settings_of(value)
        is_all = value == ALL and "" in field.schema.get("enum", ())
        values[field.name] = "" if is_all else value
    return values


def _body(given: Namespace, query: dict[str, Any]) -> tuple[bytes, str]:
    """Return the body of a request with its content type, and the format of records in `query`."""
    operation: Operation = given.operation
    if not operation.is_file:
        return (as_json(_fields(given)) if operation.content else b""), JSON
    data = bytes_of(given.data)
    if len(operation.content) > 1:
        suffix = given.data.suffix.lstrip(".")
        query.setdefault("format", suffix if suffix in FORMATS else "json")
        return data, JSON if query["format"] == "json" else "application/octet-stream"
    return data, JSON


def _fields(given: Namespace) -> dict[str, Any]:
    """Return the body of options and of NAME=VALUE, which are parameters where there are some."""
    body, settings = _values(given, "body"), settings_of(given.settings)
    if settings and "parameters" in {field.name for field in given.operation.fields}:
        return body | {"parameters": body.get("parameters", {}) | settings}
    return body | settings
