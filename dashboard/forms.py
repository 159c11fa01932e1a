"""Parsing of form fields into typed values."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from algorithms.vocabulary import ParameterField
from controlplane.errors import Fields, Invalid
from controlplane.formats.moments import read_moment

_SEPARATORS = re.compile(r"[\s,;]+")


def number(text: str) -> float:
    """Return the number in a text, nan if there is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def words_of(text: str) -> list[str]:
    """Return the words of a text, separated by blanks, lines, commas or semicolons."""
    return [word for word in _SEPARATORS.split(text) if word]


def parameters(fields: Sequence[ParameterField], values: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the fields of a form; raises `Invalid` per field.

    Empty fields have their default; browsers omit unchecked boxes, which are False.
    """
    faults: Fields = {}
    given: dict[str, Any] = {}
    for field in fields:
        text = values.get(field.name, "").strip()
        if field.type is bool and not text:
            given[field.name] = False
        elif text:
            try:
                given[field.name] = field.parsed(text)
            except ValueError as wrong:
                said = str(wrong)
                faults[field.name] = [said[:1].upper() + said[1:]]
    if faults:
        raise Invalid(faults)
    return given


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


def moment(text: str, faults: Fields) -> datetime | None:
    """Return the time in a text, by default in UTC; add errors to `faults`."""
    if not text.strip():
        return None
    try:
        return read_moment(text)
    except ValueError:
        faults["ends_at"] = ["Must be a date and a time, in the years 1 to 9999 in UTC"]
        return None
