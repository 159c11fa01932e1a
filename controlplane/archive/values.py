"""Values of windows as text in the archive: JSON with types that JSON lacks.

Numbers, texts, booleans and null are themselves (NaN and infinities as Python writes them); any
other value is an object with one field, the name of its type.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
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
_DECIMAL: Final = "decimal"
_RAISED: Final = "raised"
_DATE: Final = "date"
_TIME: Final = "time"
_BYTES: Final = "bytes"


def to_json(values: Sequence[Any]) -> str:
    """Return values as a JSON array; a value of an unknown type becomes its text."""
    plain = [value if type(value) in _PLAIN else _written(value) for value in values]
    try:
        return pydantic_core.to_json(plain, inf_nan_mode="constants").decode()
    except pydantic_core.PydanticSerializationError:
        # A user's aggregate may return text that is not Unicode; this escapes it.
        return json.dumps(plain, separators=(",", ":"))


def from_json(text: str) -> list[Any]:
    """Return the values that `to_json` wrote."""
    try:
        document = pydantic_core.from_json(text)
    except ValueError:
        # Escaped text that is not Unicode: see `to_json`.
        document = json.loads(text)
    return [value if type(value) in _PLAIN else _read(value) for value in document]


def _written(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_written(item) for item in value]
        case Decimal():
            return {_DECIMAL: str(value)}
        case datetime() | date():
            return {_TIME if isinstance(value, datetime) else _DATE: value.isoformat()}
        case bytes():
            return {_BYTES: base64.b64encode(value).decode()}
    # A user's aggregate may return anything.
    return {_RAISED: value.error} if isinstance(value, Raised) else str(value)


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    return _READERS[kind](text)


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    _DECIMAL: Decimal,
    _DATE: date.fromisoformat,
    _TIME: datetime.fromisoformat,
    _BYTES: base64.b64decode,
    _RAISED: Raised,
}
