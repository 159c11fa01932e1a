"""Conversion of a flat column to the type of a stream's column, whole Arrow arrays at a time.

A cast that fails is repeated on halves, down to the values that it fails for: a column without
faults costs one cast, and a fault costs a logarithm of the rows.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from controlplane.records.bodies.casts import Cast, cast_to
from controlplane.wire.types import type_name

FAILURES: Final = (pa.ArrowException, OverflowError, UnicodeError, ValueError)
# Finding a value at fault costs some casts: the search in a column ends at this number.
MAX_FAULTS: Final = 1_000
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
class Rules:
    """How the format of a body writes values.

    `textual`: numbers and booleans are text, as in CSV. `finite`: numbers are finite, as in JSON:
    an infinite one was too large to be read. `zone`: the IANA zone of times that name none.
    """

    textual: bool = False
    finite: bool = False
    zone: str = ""


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


def convert(array: Any, target: Any, rules: Rules) -> Converted:
    """Return an Arrow array as a type that is not nested. Raises `TooManyFaults`."""
    step = cast_to(array.type, target, textual=rules.textual, zone=rules.zone)
    if step is None:
        return all_faulty(array.to_pylist(), target)
    try:
        return Converted(step(array), {})
    except FAILURES:
        return _without_faults(array, target, step)


def all_faulty(values: Sequence[Any], target: Any) -> Converted:
    """Return nulls for values of a kind that the target type does not take."""
    faults = {
        index: reason(target, value) for index, value in enumerate(values) if value is not None
    }
    return Converted(pa.nulls(len(values), target), faults)


def _without_faults(array: Any, target: Any, step: Cast) -> Converted:
    places: list[int] = []
    _find_faults(array, 0, step, places)
    values = array.take(pa.array(places)).to_pylist()
    faults = {place: reason(target, value) for place, value in zip(places, values, strict=True)}
    if len(faults) > MAX_FAULTS:
        raise TooManyFaults(faults)
    return Converted(step(with_nulls(array, faults)), faults)


def _find_faults(array: Any, begin: int, step: Cast, places: list[int]) -> None:
    """Add the places of the values that a cast fails for; it fails for one or more of these."""
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


def with_nulls(array: Any, faults: Mapping[int, str]) -> Any:
    """Return an array with null in place of the values that have faults."""
    if not faults:
        return array
    kept = [None if index in faults else index for index in range(len(array))]
    return array.take(pa.array(kept, pa.int64()))


def reason(target: Any, value: Any) -> str:
    """Return the reason of a fault: the expected and the actual value."""
    return f"{_expected(target)}, not {_quoted(value)}"


def _expected(target: Any) -> str:
    if pa.types.is_integer(target):
        bits = target.bit_width - pa.types.is_signed_integer(target)
        first = -(2**bits) if pa.types.is_signed_integer(target) else 0
        return f"Must be a whole number from {first} to {2**bits - 1}"
    if pa.types.is_decimal(target):
        before = target.precision - target.scale
        return f"Must be a number of at most {before} digits before the point, {target.scale} after"
    if pa.types.is_timestamp(target) and target.unit == "ns":
        return f"{_REASONS['timestamp']}, of the years 1678 to 2261"
    return _REASONS[type_name(target).partition("<")[0].partition("(")[0]]


def _quoted(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool | str):
        text = json.dumps(value[:_SHOWN] if isinstance(value, str) else value)
    elif isinstance(value, int) and value.bit_length() > MAX_BITS:
        text = "a number of so many digits"
    else:
        text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
