"""Each operation of the API has a command, and each command has an operation that exists."""

from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from typing import Any, Final

from controlplane.api.application import api
from controlplane.cli.operations.catalog import OPERATIONS
from controlplane.cli.parser import parser

VERBS: Final = (
    "cancel", "approve", "reject", "begin", "withdraw", "pause", "resume", "finish-step", "stop",
    "roll-back",
)  # fmt: skip
# Commands with more than one operation, written by hand, by the operations that they call.
WRITTEN: Final = {
    "GET /clusters": "clusters list",
    "GET /clusters/{}": "clusters show",
    "POST /clusters/{}/start": "clusters start",
    "POST /clusters/{}/stop": "clusters stop",
    "POST /clusters/{}/limits": "clusters limit",
    "POST /clusters/{}/nodes": "clusters nodes",
    "GET /clusters/{}/description": "export",
    "POST /descriptions": "import",
    "GET /clusters/{}/health": "clusters health",
    "POST /clusters/{}/incidents/{}/decide": "clusters decide",
    "GET /clusters/{}/stuck-batch": "clusters skip-batch",
    "POST /clusters/{}/stuck-batch/skip": "clusters skip-batch",
    "GET /clusters/{}/shedding": "shedding show",
    "POST /clusters/{}/shedding/arm": "shedding arm",
    "POST /clusters/{}/shedding/disarm": "shedding disarm",
    "POST /clusters/{}/shedding/activate": "shedding activate",
    "POST /clusters/{}/shedding/release": "shedding release",
    "GET /clusters/{}/shedding/history": "shedding history",
    "GET /clusters/{}/shedding/episodes": "shedding history",
    "GET /clusters/{}/shedding/drill": "shedding drill",
    "GET /clusters/{}/streams": "streams list",
    "POST /clusters/{}/streams": "streams declare",
    "GET /clusters/{}/streams/{}": "streams show",
    "GET /clusters/{}/split-nodes": "clusters split-nodes",
    "POST /clusters/{}/split-capacity": "clusters split-capacity",
    "PUT /clusters/{}/streams/{}/characteristics": "streams characteristics",
    "POST /clusters/{}/streams/{}/redirect": "streams redirect",
    "GET /clusters/{}/streams/{}/redirections": "streams redirections",
    "GET /clusters/{}/streams/{}/outlook": "streams outlook",
    "POST /clusters/{}/streams/what-if": "streams what-if",
    "GET /clusters/{}/streams/{}/schema": "streams show",
    "PUT /clusters/{}/streams/{}/schema": "streams change",
    "PATCH /clusters/{}/streams/{}/schema": "streams change",
    "POST /clusters/{}/streams/{}/schema/preview": "streams change",
    "POST /clusters/{}/streams/infer": "streams infer",
    "GET /clusters/{}/dead-letters": "dead-letters list",
    "GET /clusters/{}/dead-letters/export": "dead-letters export",
    "POST /clusters/{}/dead-letters/replay": "dead-letters replay",
    "POST /clusters/{}/dead-letters/delete": "dead-letters delete",
    "POST /clusters/{}/queries": "queries submit",
    "POST /clusters/{}/queries/bulk": "queries submit",
    "GET /clusters/{}/queries": "queries list",
    "GET /clusters/{}/queries/{}": "queries show",
    "POST /clusters/{}/queries/end": "queries end",
    "DELETE /clusters/{}/queries/{}": "queries end",
    "GET /clusters/{}/queries/{}/feed": "tail",
    "GET /clusters/{}/queries/{}/keys": "queries keys",
    "POST /clusters/{}/queries/{}/key-grouping": "queries key-grouping",
    "POST /clusters/{}/queries/{}/retention": "queries retain",
    "POST /clusters/{}/queries/{}/shedding": "shedding weights",
    "GET /key-groupings": "queries groupings",
    "POST /clusters/{}/proposals": "plan",
    "GET /clusters/{}/proposals": "proposals list",
    "GET /clusters/{}/proposals/{}": "proposals show",
    "GET /clusters/{}/queue": "proposals queue",
    "GET /lab/experiments": "lab list",
    **{
        f"POST /clusters/{{}}/proposals/{{}}/{verb}": f"proposals {verb}"
        for verb in VERBS
    },
}  # fmt: skip
# Operations without a command.
REASONS: Final = {
    "POST /attached/events": "a listener inside of the attached job sends the events",
}


def plain(method: str, path: str) -> str:
    """Return an operation as METHOD path, without the names of parameters."""
    parts = path.removeprefix("/api/v1").split("/")
    return f"{method.upper()} {'/'.join('{}' if '{' in part else part for part in parts)}"


def operations() -> set[str]:
    paths = api.get_openapi_schema()["paths"]
    return {plain(method, path) for path, methods in paths.items() for method in methods}


def test_every_operation_has_a_command_or_a_reason() -> None:
    declared = {plain(item.method, item.path) for item in OPERATIONS}
    assert operations() - declared - set(WRITTEN) - set(REASONS) == set()


def test_no_command_calls_an_operation_that_does_not_exist() -> None:
    declared = {plain(item.method, item.path) for item in OPERATIONS}
    assert (declared | set(WRITTEN) | set(REASONS)) - operations() == set()
    assert len({item.command for item in OPERATIONS}) == len(OPERATIONS)


def test_every_command_explains_itself() -> None:
    known = dict(commands(parser()))
    for command in {*WRITTEN.values(), *(item.command for item in OPERATIONS)}:
        assert f"weir {command}" in known[command].format_help()


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
