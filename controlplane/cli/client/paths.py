"""Addresses of the API."""

from argparse import Namespace
from collections.abc import Mapping
from datetime import datetime
from string import Formatter
from typing import Any
from urllib.parse import quote, urlencode

from controlplane.cli.codes import CliError, ExitCode


def query_string(values: Mapping[str, Any]) -> str:
    """Return the query string of values, without those that are None."""
    present = {name: _written(value) for name, value in values.items() if value is not None}
    return f"?{urlencode(present)}" if present else ""


def _written(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)


def path_of(template: str, values: Mapping[str, Any]) -> str:
    """Return a path with its parameters in braces replaced by values.

    Raises `CliError` for one that would be none, or several, of the parts of a path.
    """
    names = [name for _, name, _, _ in Formatter().parse(template) if name]
    for name in names:
        text = str(values[name])
        if not text.strip(".") or "/" in text or text.startswith("-"):
            raise CliError(ExitCode.NOT_FOUND, f"There is no {name} {text!r}")
    return template.format_map({name: quote(str(values[name]), safe="") for name in names})


def cluster_path(given: Namespace) -> str:
    """Return the path of the cluster that a call names."""
    return path_of("/clusters/{cluster}", vars(given))


def stream_path(given: Namespace) -> str:
    """Return the path of the stream, by name or id, that a call names."""
    return path_of("/clusters/{cluster}/streams/{stream}", vars(given))
