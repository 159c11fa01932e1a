"""Execution of declared commands: request, following of long work, output."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Final

from controlplane.cli.backends import Api, api_of
from controlplane.cli.backends.interface import JSON, path_of
from controlplane.cli.codes import Code
from controlplane.cli.operations.arguments import body_of, bytes_in, values_of_options
from controlplane.cli.operations.catalog import BY_COMMAND
from controlplane.cli.operations.declaration import Operation
from controlplane.cli.output import (
    print_facts,
    print_json,
    print_rows,
    print_sentence,
    print_table,
)
from controlplane.cli.waiting import follow

FORMATS: Final = ("json", "ndjson", "csv", "arrow", "parquet")


def operate(given: Namespace) -> int:
    """Call the operation of a declared command, and print its response."""
    operation = BY_COMMAND[given.operation]
    api = api_of(given)
    answer = _request(api, given, operation)
    failed = operation.has_failed(answer)
    if operation.wait and given.wait:
        answer = follow(api, operation.wait, vars(given) | answer, given.timeout)
        failed = operation.wait.has_failed(answer)
    _print(given, operation, answer)
    return Code.REFUSED if failed else Code.DONE


def _request(api: Api, given: Namespace, operation: Operation) -> Any:
    path = path_of(operation.path, vars(given))
    query = values_of_options(given, operation.query)
    if operation.data == "records":
        return _append(api, given, path, query)
    return api.request(operation.method, path, query, body_of(given, operation))


def _append(api: Api, given: Namespace, path: str, query: dict[str, Any]) -> Any:
    """Append the records of a file as they are; their format is that of the name, else JSON."""
    suffix = given.data.suffix.lstrip(".")
    query.setdefault("format", suffix if suffix in FORMATS else "json")
    content_type = JSON if query["format"] == "json" else "application/octet-stream"
    return api.answer("POST", path, query, bytes_in(given.data), content_type).value


def _print(given: Namespace, operation: Operation, answer: Any) -> None:
    if given.json:
        print_json(answer)
    elif operation.sentence and not (operation.wait and given.wait):
        values = answer if isinstance(answer, dict) else {}
        print_sentence(operation.sentence.format_map(vars(given) | values | {"answer": answer}))
        for warning in values.get("warnings", ()):
            print_sentence(f"warning: {warning['column']}: {warning['text']}")
    elif operation.rows is None:
        print_facts(answer or {})
    elif "columns" in (answer if isinstance(answer, dict) else {}) and not operation.columns:
        print_table(dict.fromkeys(answer["columns"], "number"), answer["rows"], operation.empty)
    else:
        rows = answer[operation.rows] if operation.rows else answer
        print_rows(given, [_row(row, operation) for row in rows], operation.columns,
                   operation.empty)  # fmt: skip
        _print_pages(answer)


def _row(row: Mapping[str, Any], operation: Operation) -> dict[str, Any]:
    return {name: row.get(name) for name, _ in operation.columns.values()}


def _print_pages(answer: Any) -> None:
    if isinstance(answer, dict) and (answer.get("pages") or 1) > 1:
        print_sentence(f"page {answer['page']} of {answer['pages']} (--page)")
    elif isinstance(answer, dict) and answer.get("next") and answer.get("page") is None:
        print_sentence(f"more: --cursor {answer['next']}")
