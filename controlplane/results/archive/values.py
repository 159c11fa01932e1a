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

from controlplane.wire.aggregates.sampling import Sampled


@dataclass(frozen=True, slots=True)
class Raised:
    """The error of an aggregate's code, in the place of its value."""

    error: str


_PLAIN: Final = frozenset({int, float, str, bool, type(None)})


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
            items = [_written(item) for item in value]
            return {"sampled": items} if isinstance(value, Sampled) else items
        case Decimal():
            return {"decimal": str(value)}
        case datetime() | date():
            return {"time" if isinstance(value, datetime) else "date": value.isoformat()}
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
    # A user's aggregate may return anything.
    return {"raised": value.error} if isinstance(value, Raised) else str(value)


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
    "sampled": lambda numbers: Sampled(*numbers),
}
