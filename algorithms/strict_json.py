"""Strict JSON: no key twice, no NaN, no Infinity; errors have their position."""

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

from algorithms.errors import BadProblem


def read_json(path: str) -> Any:
    """Return the value in a file, or from standard input if `path` is "-".

    Raises `BadProblem`, which names the file, where there is none, or no JSON in it.
    """
    where = "standard input" if path == "-" else path
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise BadProblem(where, f"cannot be read: {why}") from None
    return parse_json(raw, where)


def parse_json(raw: bytes, where: str) -> Any:
    """Return the value of UTF-8 text. Raises `BadProblem`."""
    try:
        return json.loads(
            raw.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        raise BadProblem(where, f"is not UTF-8 text (byte {error.start})") from None
    except json.JSONDecodeError as error:
        why = f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise BadProblem(where, why) from None
    except RecursionError:
        raise BadProblem(where, "is nested too deeply") from None
    except ValueError as error:
        raise BadProblem(where, str(error)) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in values if names.count(name) > 1)
        raise ValueError(f"names {twice!r} twice in one object")
    return values


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number of JSON")
