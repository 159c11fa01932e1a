"""The arguments of declared commands, and the values that they put into a request."""

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from controlplane.cli.codes import Code, Refused
from controlplane.cli.command_parser import duration
from controlplane.cli.operations.declaration import Operation, Option
from controlplane.moments import read_moment

# Where the values of NAME=VALUE are in a body: on their own, or below `parameters`.
_NESTED = ("/proposals/estimate", "/lab/")


def add_arguments(sub: Any, operation: Operation) -> None:
    """Add the positional arguments and the options of a declared command to its parser."""
    for name in operation.arguments:
        sub.add_argument(name, type=int if name in operation.numbers else str)
    for option in (*operation.query, *operation.body):
        _add_option(sub, option)
    if operation.settings:
        sub.add_argument("settings", nargs="*", metavar="NAME=VALUE", help=operation.settings)
    if operation.data:
        about = f"JSON of the {operation.data}, or records; - is stdin"
        sub.add_argument("--data", type=Path, required=True, metavar="FILE", help=about)
    if operation.wait:
        sub.add_argument("--wait", action="store_true", help="wait until it is computed")
        sub.add_argument("--timeout", type=duration, default=600, metavar="SECONDS", help="(600)")


def _add_option(sub: Any, option: Option) -> None:
    more: dict[str, Any] = {"dest": f"option_{option.name}", "help": option.about}
    if option.flag is not None:
        sub.add_argument(f"--{option.name}", action="store_const", const=option.flag, **more)
        return
    kind = read_moment if option.metavar == "TIME" else str
    more |= {"type": option.type or kind, "required": option.required}
    more |= {"choices": option.choices} if option.choices else {"metavar": option.metavar}
    more |= {"action": "extend", "nargs": "+"} if option.many else {}
    sub.add_argument(f"--{option.name}", **more)


def values_of_options(given: Namespace, options: Sequence[Option]) -> dict[str, Any]:
    """Return the values of the given options by their name in the request."""
    pairs = ((option.target, vars(given)[f"option_{option.name}"]) for option in options)
    return {name: value for name, value in pairs if value is not None}


def body_of(given: Namespace, operation: Operation) -> Any:
    """Return the JSON body of a request, None without one. Raises `Refused`, `OSError`."""
    if operation.data:
        return json_in(given.data)
    if operation.method in ("GET", "DELETE"):
        return None
    body = values_of_options(given, operation.body)
    settings = _settings(getattr(given, "settings", ()))
    nested = operation.settings and any(part in operation.path for part in _NESTED)
    return body | ({"parameters": settings} if nested else settings)


def json_in(path: Path) -> Any:
    """Return the JSON value in a file. Raises `Refused`, `OSError`."""
    text = bytes_in(path).decode("utf-8", errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise Refused(Code.WRONG, f"{path} is no JSON: {wrong}", advice="mend it") from None


def bytes_in(path: Path) -> bytes:
    """Return a file's bytes, or those of standard input for -. Raises `OSError`."""
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()


def _settings(pairs: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or name in values:
            message = f"{pair}: write NAME=VALUE, each name once"
            raise Refused(Code.WRONG, message, advice="as node_moves=2")
        values[name] = _value(text)
    return values


def _value(text: str) -> Any:
    """Return a value as JSON, else as the text that it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
