"""Filters of windows, parsed from a query string."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field

from controlplane.catalog.computations import is_stream
from controlplane.errors import Invalid
from controlplane.formats.moments import read_moment
from controlplane.pagination.cursors import MAX_CURSOR, Cursor
from controlplane.pagination.pages import text_of, whole
from controlplane.wire.language.tree import DECIMAL_SCALE, Kind
from controlplane.wire.query import Computation
from controlplane.wire.records.numbers import NumberText, scaled
from controlplane.wire.results.places import START_BYTES

# The places of windows in the order of their starts and keys.
CURSOR: Final = Cursor[bytes](Annotated[bytes, Field(min_length=START_BYTES)])
MAX_WINDOWS: Final = 1000
DEFAULT_WINDOWS: Final = 200
_MAX_KEY: Final = 4_000
_MAX_MS: Final = 2**53


class WindowState(StrEnum):
    """The state of a window: open, final or incomplete.

    open: records may still change it. final: it is complete and does not change. incomplete: it
    does not change, but its query ended before all its records arrived, or it was open for longer
    than the query keeps windows.
    """

    OPEN = "open"
    FINAL = "final"
    INCOMPLETE = "incomplete"


STATES: Final = tuple(str(state) for state in WindowState)

_TIME: Final = {
    "type": "string",
    "maxLength": 40,
    "description": "ISO 8601, or ms since 1970",
}
# The parameters that `WindowFilters.of` reads, as JSON schemas.
WINDOW_PARAMETERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "from": _TIME,
    "to": _TIME,
    "key": {"type": "string", "maxLength": _MAX_KEY},
    "state": {"type": "string", "enum": ["", *STATES]},
    "order": {"type": "string", "enum": ["", "newest", "oldest"]},
    "cursor": {"type": "string", "maxLength": MAX_CURSOR},
    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_WINDOWS},
}


@dataclass(frozen=True)
class WindowFilters:
    """Filters of windows: starts from first_ms to last_ms (inclusive), a key, a state.

    `key` is the text of a JSON array or object, or of the only value of the key; the page begins
    after the place `after`.
    """

    first_ms: int = -_MAX_MS
    last_ms: int = _MAX_MS
    key: str = ""
    state: WindowState | None = None
    after: bytes = b""
    limit: int = DEFAULT_WINDOWS
    newest_first: bool = True

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "WindowFilters":
        """Read from, to, key, state, cursor, limit, order. Raises `Invalid`, by parameter."""
        faults: dict[str, list[str]] = {}
        first = _moment(values, "from", -_MAX_MS, faults)
        stop = _moment(values, "to", _MAX_MS + 1, faults)
        state, order = str(values.get("state", "")), str(values.get("order") or "newest")
        if state and state not in STATES:
            faults["state"] = [f"must be one of {', '.join(STATES)}"]
        if order not in ("newest", "oldest"):
            faults["order"] = ["must be newest or oldest"]
        key, after = str(values.get("key", "")).strip(), b""
        if len(key) > _MAX_KEY:
            faults["key"] = [f"is longer than {_MAX_KEY:,} characters"]
        limit = DEFAULT_WINDOWS
        try:
            cursor = text_of(values, "cursor")
            after = CURSOR.place(cursor) if cursor else b""
        except Invalid as invalid:
            faults |= invalid.fields
        try:
            limit = whole(values, "limit", DEFAULT_WINDOWS, MAX_WINDOWS)
        except Invalid as invalid:
            faults |= invalid.fields
        if faults:
            raise Invalid(faults)
        wanted = WindowState(state) if state else None
        return cls(first, stop - 1, key, wanted, after, limit, order == "newest")


def _moment(
    values: Mapping[str, Any], name: str, default: int, faults: dict[str, list[str]]
) -> int:
    """Return a time in ms since the epoch, of ISO 8601 or as such a number."""
    text = str(values.get(name, "")).strip()
    if not text:
        return default
    try:
        ms = int(text) if text.lstrip("-").isdecimal() else _ms(text)
    except ValueError:
        ms = None
    if ms is None or abs(ms) > _MAX_MS:
        faults[name] = ["must be a time as 2026-01-31T12:00:00Z, or ms since 1970"]
        return default
    return ms


def _ms(text: str) -> int:
    # The plus of a zone is a blank in a URL that was not encoded.
    return round(read_moment(text.replace(" ", "+") if "T" in text else text).timestamp() * 1000)


def key_values(text: str, computation: Computation, streams: Mapping[int, str]) -> list[Any] | None:
    """Return the values of a key that a filter names, None for no filter. Raises `Invalid`.

    Streams are given by name, times as ISO 8601.
    """
    if not text:
        return None
    wanted = _named(text, [name for name, _ in computation.key])
    ids = {name: pk for pk, name in streams.items()}
    key_values = []
    for (name, expression), value in zip(computation.key, wanted, strict=True):
        if is_stream(name, expression):
            key_values.append(ids.get(str(value), -1))
        else:
            key_values.append(_typed(name, expression.kind, value))
    return key_values


def _named(text: str, names: Sequence[str]) -> Sequence[Any]:
    try:
        # Numbers keep their digits: the converters read them.
        value = json.loads(text, parse_float=NumberText, parse_int=NumberText)
    except (ValueError, RecursionError):
        value = text
    if isinstance(value, dict) and sorted(value) == sorted(names):
        return [value[name] for name in names]
    if isinstance(value, list) and len(value) == len(names):
        return value
    if not isinstance(value, dict | list) and len(names) == 1:
        # Of a key of text, `true` and `NaN` are texts.
        return [value if value is None or isinstance(value, str) else text]
    columns = ", ".join(names) or "none"
    raise Invalid({"key": [f"must be a JSON array or object of the key's columns: {columns}"]})


def _typed(name: str, kind: Kind, value: Any) -> Any:
    try:
        return None if value is None else _CONVERTERS[kind](value)
    except (ValueError, TypeError, KeyError, OverflowError):
        raise Invalid({"key": [f"{name} is {kind}, which {value!r:.100} is not"]}) from None


def _whole(value: Any) -> int:
    number = None if isinstance(value, bool) else scaled(str(value), 0)
    if number is None or not -(2**63) <= number < 2**63:
        raise ValueError
    return number


def _decimal(value: Any) -> Decimal:
    """Return a decimal of at most nine digits after the point, which a key has."""
    number = scaled(str(value), DECIMAL_SCALE)
    if number is None:
        raise ValueError
    return Decimal(f"{number}E-{DECIMAL_SCALE}")


def _time(value: Any) -> datetime:
    return datetime.fromtimestamp(_ms(str(value)) / 1000, UTC)


_CONVERTERS: Final[Mapping[Kind, Any]] = {
    Kind.INT: _whole,
    Kind.FLOAT: float,
    Kind.DECIMAL: _decimal,
    Kind.BOOL: lambda value: {"true": True, "false": False}[str(value).lower()],
    Kind.TEXT: str,
    Kind.TIME: _time,
    Kind.DATE: lambda value: date.fromisoformat(str(value)),
}
