"""Values of the command line: NAME=VALUE, each value JSON or text."""

import json
from collections.abc import Sequence
from typing import Any

from controlplane.cli.codes import CliError, ExitCode


def settings_of(pairs: Sequence[str]) -> dict[str, Any]:
    """Return NAME=VALUE as values by name. Raises `CliError`."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or name in values:
            message = f"{pair}: write NAME=VALUE, each name once"
            raise CliError(ExitCode.WRONG, message, advice="as node_moves=2")
        values[name] = value_of(text)
    return values


def value_of(text: str) -> Any:
    """Return a value as JSON, else as the text that it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
