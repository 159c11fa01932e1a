"""Conversion of a flat column to the type of a stream's column, whole Arrow arrays at a time.

A cast that raises is repeated on halves, down to the values that it raises for: a column without
faults costs one cast, and such a fault costs a logarithm of the rows.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from controlplane.wire.records.casts import FAILURES, Cast, CastRules, cast_to
from controlplane.wire.records.numbers import NumberText, integer_range, is_text
from controlplane.wire.types import type_name

# More faults of a column are not described, and the search for them ends.
MAX_FAULTS: Final = 1_000
# Reasons of `TooManyFaults`, at most.
_LISTED: Final = 20
_SHOWN: Final = 40
# A whole number may have more digits than Python writes; beyond the bits of a float no column holds
# it.
MAX_BITS: Final = 1100
# Reasons by the name of the type, without its parameters.
_REASONS: Final[Mapping[str, str]] = {
    "bool": "Must be true or false",
    "float32": "Must be a number that 32 bits hold",
    "float64": "Must be a number that 64 bits hold",
    "string": "Must be text in Unicode",
    "binary": "Must be base64 text",
    "date": "Must be a date, as 2024-05-31",
    "timestamp": "Must be milliseconds since 1970, or a time with a zone (ISO 8601)",
    "list": "Must be a list",
    "struct": "Must be an object",
}


@dataclass(frozen=True)
class Converted:
    """An array of a column's type, null where a value has a fault; reasons by index."""

    array: Any
    faults: dict[int, str]


class TooManyFaults(Exception):
    """A column has more than `MAX_FAULTS` values at fault; `faults`: the first, by index."""

    def __init__(self, faults: Mapping[int, str] | None = None) -> None:
        self.faults = dict(faults or {})
        super().__init__(f"more than {MAX_FAULTS:,} values do not fit their column")


def convert(array: Any, target: Any, rules: CastRules) -> Converted:
    """Return an Arrow array as a type that is not nested. Raises `TooManyFaults`."""
    if is_text(array.type):
        array = array.cast(pa.string())
    step = cast_to(array.type, target, rules)
    if step is None:
        return with_faults(array, pa.nulls(len(array), target))
    try:
        return with_faults(array, step(array))
    except FAILURES:
        places: list[int] = []
        _find_faults(array, 0, step, places)
        if len(places) > MAX_FAULTS:
            raise TooManyFaults(_reasons(array, places[:_LISTED], target)) from None
        return with_faults(array, step(with_nulls(array, places)))


def with_faults(values: Any, result: Any) -> Converted:
    """Return a result with a fault for each value that is null in it alone.

    `values`: the Arrow array or the Python values of the result. Raises `TooManyFaults`.
    """
    if isinstance(values, pa.Array):
        missing = values.null_count < result.null_count
        known = np.asarray(values.is_valid()) if missing else None
    else:
        missing = result.null_count > 0
        known = np.array([value is not None for value in values]) if missing else None
    if known is None:
        return Converted(result, {})
    places = np.flatnonzero(known & np.asarray(result.is_null())).tolist()
    if len(places) > MAX_FAULTS:
        raise TooManyFaults(_reasons(values, places[:_LISTED], result.type))
    return Converted(result, _reasons(values, places, result.type))


def _reasons(values: Any, places: Sequence[int], target: Any) -> dict[int, str]:
    return {place: reason(target, python_value(values[place])) for place in places}


def python_value(value: Any) -> Any:
    """Return an Arrow scalar as Python has it, or as text; other values as they are."""
    if not isinstance(value, pa.Scalar):
        return value
    try:
        return value.as_py()
    except FAILURES:
        # Python has no such date, or the fields of a struct have one name.
        return f"{getattr(value, 'value', 'a value')} of {value.type}"


def _find_faults(array: Any, begin: int, step: Cast, places: list[int]) -> None:
    """Add the places of the values that a cast raises for; it raises for one or more of these."""
    if len(places) > MAX_FAULTS:
        return
    if len(array) == 1:
        places.append(begin)
        return
    half = len(array) // 2
    for part, start in ((array[:half], begin), (array[half:], begin + half)):
        try:
            step(part)
        except FAILURES:
            _find_faults(part, start, step, places)


def with_nulls(array: Any, places: Sequence[int] | Mapping[int, str]) -> Any:
    """Return an array with null at some places."""
    if not places:
        return array
    kept = np.arange(len(array))
    missing = np.zeros(len(array), bool)
    missing[list(places)] = True
    return array.take(pa.array(kept, mask=missing))


def reason(target: Any, value: Any) -> str:
    """Return the reason of a fault: the expected and the actual value."""
    return f"{_expected(target)}, not {_quoted(value)}"


def _expected(target: Any) -> str:
    if pa.types.is_integer(target):
        least, most = integer_range(target)
        return f"Must be a whole number from {least} to {most}"
    if pa.types.is_decimal(target):
        before = target.precision - target.scale
        return f"Must be a number of at most {before} digits before the point, {target.scale} after"
    if pa.types.is_timestamp(target) and target.unit == "ns":
        return f"{_REASONS['timestamp']}, of the years 1678 to 2261"
    return _REASONS[type_name(target).partition("<")[0].partition("(")[0]]


def _quoted(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple | np.ndarray):
        return "a list"
    if isinstance(value, bool) or (isinstance(value, str) and not isinstance(value, NumberText)):
        text = json.dumps(value[:_SHOWN] if isinstance(value, str) else value)
    elif isinstance(value, int) and value.bit_length() > MAX_BITS:
        text = "a number of so many digits"
    else:
        text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
