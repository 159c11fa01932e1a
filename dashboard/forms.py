"""Parsing of form fields into typed values."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from algorithms.vocabulary import ParameterField
from controlplane.errors import Fields, Invalid

_SEPARATORS = re.compile(r"[\s,;]+")
# Titles of parameters by name and unit, or by name alone, and the letter of the papers.
_TITLES: Final[Mapping[tuple[str, str] | str, tuple[str, str]]] = {
    "nu": ("Slack of the load", "nu"),
    ("alpha", "queries"): ("Absolute slack", "alpha"),
    "alpha": ("Smoothing of the level", "alpha"),
    "gamma": ("Smoothing of the trend", "gamma"),
    "tau": ("Slack of the work", "tau"),
    "horizon": ("Forecast periods", "k"),
    "headroom": ("Head-room", "H"),
    "seconds": ("Time of the computation", ""),
    "sweeps": ("Tried moves", ""),
    "start": ("Start", ""),
    "seed": ("Seed", ""),
    "preset": ("Preset", ""),
    "threads": ("Threads", ""),
    "prefer": ("Among equals", ""),
    "known": ("Known queries", ""),
    "plan": ("Plan of the reservations", ""),
    "tokens": ("Tokens of a node", ""),
    "balanced": ("Bounded loads", ""),
    "period_s": ("Length of a period", ""),
    "latency_s": ("Longest latency", ""),
    "foresee": ("Use the forecast", ""),
    "fill": ("Filled share", ""),
    "consolidate": ("Close split nodes", ""),
    "room": ("Free capacity", ""),
    "limit": ("Largest imbalance", ""),
    "saving": ("Least saving", ""),
    "messages": ("Sampled messages", ""),
}


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
            "title": parameter_title(field),
            "letter": _titled(field)[1],
            "value": _form_field(field, values),
            "is_flag": field.type is bool,
            "faults": errors.get(field.name, []),
        }
        for field in fields
    ]


def parameter_title(field: ParameterField) -> str:
    """Return the title of a parameter in plain words; of an unknown one from its name."""
    return _titled(field)[0] or field.name.replace("_", " ").capitalize()


def _titled(field: ParameterField) -> tuple[str, str]:
    return _TITLES.get((field.name, field.unit)) or _TITLES.get(field.name, ("", ""))


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
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        faults["ends_at"] = ["Must be a date and a time"]
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
