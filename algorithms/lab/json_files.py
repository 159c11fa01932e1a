"""Strict JSON in files."""

import sys
from pathlib import Path
from typing import Any, Final

from algorithms.errors import BadProblem
from algorithms.strict_json import BadJson, JsonLimits, read_bounded

# Problems of planners and documents of clusters in files: 100,000 queries with their streams.
FILE_BOUNDS: Final = JsonLimits(size=256 * 2**20, values=40_000_000)


def read_json(path: str) -> Any:
    """Return the value in a file, or from standard input if `path` is "-".

    Raises `BadProblem`, which names the file, where there is none, or no JSON in it.
    """
    where = "standard input" if path == "-" else path
    most = FILE_BOUNDS.size + 1
    try:
        if path == "-":
            raw = sys.stdin.buffer.read(most)
        else:
            with Path(path).open("rb") as file:
                raw = file.read(most)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise BadProblem(where, f"cannot be read: {why}") from None
    return parse_json(raw, where)


def parse_json(raw: bytes, where: str) -> Any:
    """Return the value of UTF-8 text. Raises `BadProblem`."""
    try:
        return read_bounded(raw, FILE_BOUNDS)
    except BadJson as error:
        raise BadProblem(where, str(error)) from None
