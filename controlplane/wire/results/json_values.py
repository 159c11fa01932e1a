"""Keys and values of windows as JSON arrays, with types that JSON lacks.

Numbers, texts, booleans and null are themselves; NaN and infinities, which databases do not read
in JSON, are the texts NaN, Infinity and -Infinity. Any other value is an object with one field, the
name of its type.
"""

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pydantic_core


@dataclass(frozen=True, slots=True)
class Raised:
    """The error of an aggregate's code, in the place of its value."""

    error: str


_PLAIN: Final = frozenset({int, float, str, bool, type(None)})
_NUMBERS: Final = _PLAIN - {str}


def arrays_of(columns: Sequence[Sequence[Any]], rows: int) -> list[str]:
    """Return a JSON array for each row of some columns."""
    if not columns:
        return ["[]"] * rows
    parts = [_texts(column) for column in columns]
    if len(parts) == 1:
        return [f"[{text}]" for text in parts[0]]
    return [f"[{','.join(row)}]" for row in zip(*parts, strict=True)]


def _texts(column: Sequence[Any]) -> list[str]:
    """Return each value of a column as JSON."""
    kinds = {*map(type, column)}
    if kinds <= _NUMBERS:
        text = pydantic_core.to_json(list(column), inf_nan_mode="strings").decode()
        return text[1:-1].split(",") if column else []
    if kinds <= _PLAIN - {float, bool}:
        known = {value: to_json(value) for value in {*column}}
        return [known[value] for value in column]
    return [to_json(value) for value in column]


def to_json(value: Any) -> str:
    """Return a value as JSON; a value of an unknown type becomes its text."""
    plain = value if type(value) in _PLAIN else _written(value)
    try:
        return pydantic_core.to_json(plain, inf_nan_mode="strings").decode()
    except pydantic_core.PydanticSerializationError:
        # A user's aggregate may return text that is not Unicode; this escapes it.
        return json.dumps(_finite(plain), separators=(",", ":"))


def from_json(text: str) -> list[Any]:
    """Return the values of an array."""
    return _read_all(_document(text))


def columns_from_json(texts: Sequence[str]) -> list[list[Any]]:
    """Return the columns of arrays of one length, all decoded together, without a list for each."""
    width = len(_document(texts[0])) if texts else 0
    values = _document(f"[{','.join([text[1:-1] for text in texts])}]" if width else "[]")
    assert len(values) == width * len(texts)
    return [_read_all(values[index::width]) for index in range(width)]


def _document(text: str) -> list[Any]:
    try:
        document: list[Any] = pydantic_core.from_json(text)
    except ValueError:
        # Escaped text that is not Unicode: see `to_json`.
        document = json.loads(text)
    return document


def _read_all(values: Sequence[Any]) -> list[Any]:
    kinds = {*map(type, values)}
    if kinds <= _PLAIN:
        return list(values)
    if kinds <= {dict, type(None)}:
        with suppress(KeyError):
            return [None if value is None else Decimal(value["decimal"]) for value in values]
    return [value if type(value) in _PLAIN else _read(value) for value in values]


def _written(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_written(item) for item in value]
        case Decimal():
            return {"decimal": str(value)}
        case datetime() | date():
            return {"time" if isinstance(value, datetime) else "date": value.isoformat()}
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
    # A user's aggregate may return anything.
    return {"raised": value.error} if isinstance(value, Raised) else str(value)


def _finite(value: Any) -> Any:
    """Return a value with texts in place of NaN and infinities."""
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    return _READERS[kind](text)


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "decimal": Decimal,
    "date": date.fromisoformat,
    "time": datetime.fromisoformat,
    "bytes": base64.b64decode,
    "raised": Raised,
}
