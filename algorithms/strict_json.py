"""Strict JSON within bounds: size, depth, values; no key twice, no NaN, no number beyond a double,
and no text with NUL or half of a surrogate pair, which neither databases nor UTF-8 store.

The bounds are checked on the text, before a value is created: deeply nested text costs a parser its
stack, and a short text of brackets a hundred times its memory.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import numpy as np

# Bytes that are counted at once: in between, other threads run.
_BLOCK: Final = 2**20
_QUOTE: Final = ord('"')
# Steps of the depth by byte: one of "[{" opens, one of "]}" closes, a comma does neither.
_NO_MARK: Final = 2
_STEPS: Final = np.full(256, _NO_MARK, dtype=np.int8)
_STEPS[ord(",")] = 0
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1
# What may be NUL or half of a surrogate pair.
_ESCAPED: Final = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_PLAIN: Final = re.compile(r"[^\W\d][\w-]*")
# The largest double has 309 digits before the point. The parts of a text with a number that may be
# larger, where each digit is 0: an expression would try each digit of a number as the first.
_DIGITS: Final = bytes.maketrans(b"123456789E", b"000000000e")
_LONG_NUMBERS: Final = (b"0" * 309, b"e000", b"e+000")
# A fault in a longer text has no place: it takes another pass.
_MAX_LOCATED: Final = 2**20


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """The largest text (bytes), nesting depth, and number of values in it."""

    size: int = 16 * 2**20
    depth: int = 64
    values: int = 2_000_000


BOUNDS: Final = JsonLimits()
Steps = tuple[int | str, ...]


class BadJson(ValueError):
    """Text that is not JSON within the bounds, by `code`.

    `code`: size, depth, values, number, name, character or syntax. `line`, `column`: the place of a
    syntax error, 0 for another fault; `place`: that of another fault, as a.b[0], "" where unknown.
    """

    def __init__(self, code: str, message: str, line: int = 0, column: int = 0) -> None:
        self.code = code
        self.line = line
        self.column = column
        self.place = ""
        super().__init__(message)

    def placed(self, path: Steps) -> "BadJson":
        """Return the same fault with its place in the value."""
        place = place_of(path)
        error = BadJson(self.code, f"{self} (at {place or 'the top'})")
        error.place = place
        return error


def read_bounded(raw: bytes, bounds: JsonLimits = BOUNDS) -> Any:
    """Return the value of UTF-8 text. Raises `BadJson`."""
    check_bounds(raw, bounds)
    # A hook per number is slow, so only suspicious text has it.
    zeros = raw.translate(_DIGITS)
    number = _finite if any(part in zeros for part in _LONG_NUMBERS) else None
    del zeros
    try:
        text = raw.decode("utf-8-sig")
        value = json.loads(
            text,
            object_pairs_hook=object_of,
            parse_constant=_refuse_constant,
            parse_float=number,
            parse_int=_integer if number else None,
        )
    except UnicodeDecodeError as error:
        raise BadJson("syntax", f"is not UTF-8 text (byte {error.start})") from None
    except json.JSONDecodeError as error:
        why = f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise BadJson("syntax", why, error.lineno, error.colno) from None
    except BadJson as error:
        raise _located(error, text) from None
    if _ESCAPED.search(raw):
        for path, fault in unstorable(value):
            raise fault.placed(path)
    return value


def _located(error: BadJson, text: str) -> BadJson:
    """Return a fault that a hook of the parser has found, with its place."""
    if len(text) > _MAX_LOCATED:
        return error
    try:
        value = json.loads(text, object_pairs_hook=_Pairs, parse_int=float)
    except ValueError:
        return error
    return next(
        (error.placed(path) for path, fault in unstorable(value) if fault.code == error.code), error
    )


class _Pairs(tuple[tuple[str, Any], ...]):
    """The names and values of an object, also those that occur twice."""


def unstorable(value: Any, path: Steps = ()) -> Iterator[tuple[Steps, BadJson]]:
    """Yield the places in a value of what JSON or databases do not take, the innermost first."""
    if isinstance(value, dict | _Pairs):
        pairs = tuple(value.items()) if isinstance(value, dict) else value
        for name, item in pairs:
            yield from unstorable(name, (*path, name))
            yield from unstorable(item, (*path, name))
        if len(dict(pairs)) != len(pairs):
            yield (*path, _twice(pairs)), BadJson("name", "names a field twice")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unstorable(item, (*path, index))
    elif isinstance(value, str) and any(c == "\0" or "\ud800" <= c <= "\udfff" for c in value):
        yield path, BadJson("character", "has a character that is none (NUL, or half of one)")
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, BadJson("number", "has no finite number")


def place_of(path: Steps) -> str:
    """Return a place in a value as people write it: queries[3].streams[0]."""
    place = ""
    for step in path:
        if isinstance(step, int):
            place += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            place += f".{step}" if place else step
        else:
            place += f"[{json.dumps(step, ensure_ascii=False)}]"
    return place


def check_bounds(raw: bytes, bounds: JsonLimits = BOUNDS) -> None:
    """Raise `BadJson` if text is larger, nested deeper, or has more values than allowed."""
    if len(raw) > bounds.size:
        raise BadJson("size", f"has more than {bounds.size:,} bytes")
    if raw.count(b"[") + raw.count(b"{") <= bounds.depth and raw.count(b",") < bounds.values:
        # Ordinary requests end here.
        return
    # Without escapes, which occur in strings only, each quote opens or closes a string.
    text = raw.replace(rb"\\", b"__").replace(rb"\"", b"__") if b"\\" in raw else raw
    quotes = depth = values = 0
    for begin in range(0, len(text), _BLOCK):
        block = np.frombuffer(text, np.uint8, min(_BLOCK, len(text) - begin), begin)
        is_outside = (np.cumsum(block == _QUOTE, dtype=np.int32) + quotes) % 2 == 0
        steps = np.where(is_outside, _STEPS[block], _NO_MARK)
        marks = steps[steps != _NO_MARK]
        if marks.size:
            depths = np.cumsum(marks, dtype=np.int32) + depth
            depth = int(depths[-1])
            if int(depths.max()) > bounds.depth:
                raise BadJson("depth", f"is nested too deeply: at most {bounds.depth} levels")
        values += int(np.count_nonzero(marks >= 0))
        if values > bounds.values:
            raise BadJson("values", f"has more than {bounds.values:,} values")
        quotes += int(np.count_nonzero(block == _QUOTE))


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of its names and values. Raises `BadJson` for a name twice."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise BadJson("name", f"names {_twice(pairs)!r} twice in one object")
    return values


def _twice(pairs: Sequence[tuple[str, Any]]) -> str:
    """Return the first name that stands twice, in a time linear in the names."""
    counts = Counter(name for name, _ in pairs)
    return next(name for name, count in counts.items() if count > 1)


def _refuse_constant(word: str) -> NoReturn:
    raise BadJson("number", f"{word} is not a number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise BadJson("number", f"has a number that is too large: {text[:20]}")
    return value


def _integer(text: str) -> int:
    _finite(text)
    return int(text)
