"""Each operation of the API has a command, and each command has an operation that exists."""

from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from typing import Any, Final

from controlplane.api.application import api
from controlplane.cli.operations.catalog import OPERATIONS
from controlplane.cli.parser import parser

# Operations without a command.
REASONS: Final = {
    "POST /attached/events": "a listener inside of the attached job sends the events",
    "POST /clusters/{}/streams/infer": "`streams infer` reads the file in its own process",
    "POST /clusters/{}/queries": "`queries submit` uses the bulk operation",
    "DELETE /clusters/{}/queries/{}": "`queries end` ends several at once",
}


def plain(method: str, path: str) -> str:
    """Return an operation as METHOD path, without the names of parameters."""
    parts = path.removeprefix("/api/v1").split("/")
    return f"{method.upper()} {'/'.join('{}' if '{' in part else part for part in parts)}"


def operations() -> set[str]:
    paths = api.get_openapi_schema()["paths"]
    return {plain(method, path) for path, methods in paths.items() for method in methods}


def test_declared_commands_call_operations_that_exist() -> None:
    """Operations of the other commands are recorded in `test_elsewhere`."""
    declared = {plain(item.method, item.path) for item in OPERATIONS}
    assert (declared | set(REASONS)) - operations() == set()
    assert len({item.command for item in OPERATIONS}) == len(OPERATIONS)


def test_every_command_explains_itself() -> None:
    for name, command in commands(parser()):
        assert f"weir {name}" in command.format_help()


def commands(top: ArgumentParser, name: str = "") -> Iterator[tuple[str, ArgumentParser]]:
    """Yield each command by its name, and its parser."""
    groups = [action for action in top._actions if isinstance(action, _SubParsersAction)]
    for choices in (action.choices for action in groups):
        for word, sub in choices.items():
            yield from commands(sub, f"{name} {word}".strip())
    if not groups:
        yield name, top


def test_options_have_the_names_of_the_documented_fields() -> None:
    """An option whose name the operation does not know would be refused at each use."""
    document = api.get_openapi_schema()
    by_name = {
        plain(method, path): entry
        for path, methods in document["paths"].items()
        for method, entry in methods.items()
    }
    for item in OPERATIONS:
        entry = by_name[plain(item.method, item.path)]
        known = {parameter["name"] for parameter in entry.get("parameters", ())}
        assert {option.target for option in item.query} <= known, item.command
        if item.body:
            assert {option.target for option in item.body} <= fields(document, entry), item.command


def fields(document: dict[str, Any], entry: dict[str, Any]) -> set[str]:
    body = entry["requestBody"]["content"]["application/json"]["schema"]
    choices = body.get("anyOf", [body])
    names = [choice["$ref"].rpartition("/")[2] for choice in choices if "$ref" in choice]
    schemas = document["components"]["schemas"]
    return {name for schema in names for name in schemas[schema]["properties"]}
