"""Parsers of the commands that the OpenAPI document has."""

import json
from argparse import BooleanOptionalAction
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from controlplane.cli.command_parser import add_command, add_group, duration
from controlplane.cli.operations.derived import Operation, RequestField, operations_of
from controlplane.cli.operations.schemas import Schema
from controlplane.cli.waiting import WAITS
from controlplane.formats.moments import read_moment

# The word for the value "" of a choice, which leaves rows unfiltered.
ALL: Final = "all"
_BOUNDS: Final = {"minimum": "at least", "maximum": "at most"}
_TYPES: Final[Mapping[str, Any]] = {"integer": int, "number": float}


def add_operations(
    commands: Any, groups: dict[str, Any], document: Mapping[str, Any], words: Sequence[str]
) -> None:
    """Add the commands of a document to the groups, of which new ones are made.

    `words`: those of the call. Only what they name is complete, [] is everything: that takes time.
    """
    operations = list(operations_of(document))
    for operation in operations:
        group, _, name = operation.command.rpartition(" ")
        if group and group not in groups:
            groups[group] = add_group(commands, group, _about(group, operations))
        if group and words and group != words[0]:
            continue
        parent, summary = groups[group] if group else commands, operation.entry["summary"]
        sub = add_command(parent, name, "operation.operate", summary, operation.about)
        sub.set_defaults(operation=operation)
        if not words or name in words[:2]:
            _add_fields(sub, operation)


def _about(group: str, operations: Sequence[Operation]) -> str:
    """Return the names of the commands of a group."""
    names = [each.command.removeprefix(f"{group} ") for each in operations
             if each.command.startswith(f"{group} ")]  # fmt: skip
    return ", ".join(names)


def _add_fields(sub: Any, operation: Operation) -> None:
    for field in operation.fields:
        if field.name == "slug" and operation.finds_cluster:
            continue
        if field.is_argument:
            _add_argument(sub, field)
        else:
            _add_option(sub, field)
    if operation.is_file:
        about = "the body: JSON, or records in the format of the name; - is stdin"
        sub.add_argument("--data", type=Path, required=True, metavar="FILE", help=about)
    elif operation.content:
        about = "further fields, each value JSON or text, as pause_ms=null"
        sub.add_argument("settings", nargs="*", metavar="NAME=VALUE", help=about)
    if operation.command in WAITS:
        sub.add_argument("--wait", action="store_true", help="wait until it is computed")
        sub.add_argument("--timeout", type=duration, default=600, metavar="SECONDS", help="(600)")


def _add_argument(sub: Any, field: RequestField) -> None:
    more: dict[str, Any] = {"type": _type(field.schema), "help": _help(field.schema)}
    if field.schema.get("type") == "array":
        more["nargs"] = "+" if field.is_required else "*"
    elif not field.is_required:
        more["nargs"] = "?"
    sub.add_argument(field.dest, metavar=field.option, **more)


def _add_option(sub: Any, field: RequestField) -> None:
    schema, option = field.schema, f"--{field.option}"
    more: dict[str, Any] = {"dest": field.dest, "help": _help(schema)}
    if schema.get("type") == "boolean":
        # The server has the default.
        sub.add_argument(option, action=BooleanOptionalAction, default=None, **more)
        return
    if schema.get("type") == "object":
        sub.add_argument(option, action="append", metavar="NAME=VALUE", **more)
        return
    more |= {"type": _type(schema), "required": field.is_required, "metavar": _metavar(schema)}
    more |= {"action": "extend", "nargs": "+"} if schema.get("type") == "array" else {}
    choices = [choice or ALL for choice in schema.get("enum", ()) if choice is not None]
    reverse = [choice for choice in choices if choice.startswith("-")]
    if choices:
        # A list is always in some order.
        left_out = {*reverse, ALL} if reverse else set()
        more |= {"choices": [choice for choice in choices if choice not in left_out]}
        more.pop("metavar")
    sub.add_argument(option, **more)
    if reverse:
        sub.add_argument("--reverse", action="store_true", help="the largest first")


def _type(schema: Schema) -> Any:
    if schema.get("format") == "date-time":
        return read_moment
    kind = schema.get("items", schema).get("type", "string")
    return _TYPES.get(kind, str)


def _metavar(schema: Schema) -> str:
    if schema.get("format") == "date-time":
        return "TIME"
    return "N" if _type(schema) in (int, float) else "TEXT"


def _help(schema: Schema) -> str:
    default = schema.get("default")
    facts = [
        *(f"{word} {schema[name]:,}" for name, word in _BOUNDS.items() if name in schema),
        *([f"default {json.dumps(default)}"] if default not in (None, "", [], {}) else []),
    ]
    texts = [str(schema.get("description", "")), f"({', '.join(facts)})" if facts else ""]
    return " ".join(text for text in texts if text).replace("%", "%%")
