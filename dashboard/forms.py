"""How pages read forms: a reader for each field, and the errors of all fields at once."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from algorithms.vocabulary import ParameterField
from controlplane.errors import Fields, Invalid
from controlplane.formats.moments import read_moment
from controlplane.numbers import raised

# Returns the value of a text without surrounding blanks; the message of its `ValueError` belongs to
# the field.
Reader = Callable[[str], Any]
_SEPARATORS: Final = re.compile(r"[\s,;]+")
_MAX_DIGITS: Final = 9


def read(values: Mapping[str, str], **readers: Reader) -> dict[str, Any]:
    """Return the values of the fields of a form. Raises `Invalid` with the errors by field."""
    given, faults = read_some(values, readers)
    if faults:
        raise Invalid(faults)
    return given


def read_some(
    values: Mapping[str, str], readers: Mapping[str, Reader]
) -> tuple[dict[str, Any], Fields]:
    """Return the values of the fields that have one, and the errors of the others."""
    given: dict[str, Any] = {}
    faults: Fields = {}
    for name, reader in readers.items():
        try:
            given[name] = reader(values.get(name, "").strip())
        except ValueError as wrong:
            faults[name] = [str(wrong)]
    return given, faults


def optional(reader: Reader, default: Any = None) -> Reader:
    """Return a reader that returns the default for an empty text."""
    return lambda text: reader(text) if text else default


def number(text: str) -> float:
    """Return the number in a text, nan if there is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def finite(text: str) -> float:
    """Read a finite number."""
    value = number(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is not a number" if text else "Must be a number")
    return value


def number_or(message: str) -> Reader:
    """Return a reader of numbers, grouped by commas or not, with an error message of its own."""

    def reader(text: str) -> float:
        try:
            return float(text.replace(",", ""))
        except ValueError:
            raise ValueError(message) from None

    return reader


def whole_number(text: str) -> int | None:
    """Return a whole number of at most nine digits; commas and blanks may group them."""
    digits = "".join(text.replace(",", "").split())
    is_whole = digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS
    return int(digits) if is_whole else None


def whole_or(message: str) -> Reader:
    """Return a reader of whole numbers with an error message of its own."""

    def reader(text: str) -> int:
        value = whole_number(text)
        if value is None:
            raise ValueError(message)
        return value

    return reader


whole: Final = whole_or("Enter a whole number")


def moment(text: str) -> datetime:
    """Read a time, by default in UTC."""
    try:
        return read_moment(text)
    except ValueError:
        message = "Must be a date and a time, in the years 1 to 9999 in UTC"
        raise ValueError(message) from None


def words_of(text: str) -> list[str]:
    """Return the words of a text, separated by blanks, lines, commas or semicolons."""
    return [word for word in _SEPARATORS.split(text) if word]


def parameters(fields: Sequence[ParameterField], values: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the fields of a form; raises `Invalid` per field.

    Empty fields have their default; browsers omit unchecked boxes, which are False.
    """
    given = [field for field in fields if values.get(field.name, "").strip()]
    unchecked = {field.name: False for field in fields if field.type is bool and field not in given}
    return unchecked | read(values, **{field.name: _parser(field) for field in given})


def _parser(field: ParameterField) -> Reader:
    def reader(text: str) -> Any:
        try:
            return field.parsed(text)
        except ValueError as wrong:
            raise ValueError(raised(str(wrong))) from None

    return reader


def form_fields(
    fields: Sequence[ParameterField], values: Mapping[str, str], errors: Fields
) -> list[dict[str, Any]]:
    """Return the fields with their submitted or default values."""
    return [
        {
            "field": field,
            "value": _form_field(field, values),
            "is_flag": field.type is bool,
            "faults": errors.get(field.name, []),
        }
        for field in fields
    ]


def _form_field(field: ParameterField, values: Mapping[str, str]) -> str | bool:
    if field.type is bool:
        return bool(values.get(field.name)) if values else bool(field.default)
    if field.name in values:
        return values[field.name]
    # The exact text of the default, without an exponent or rounding.
    return "" if field.default is None else str(field.default).removesuffix(".0")
