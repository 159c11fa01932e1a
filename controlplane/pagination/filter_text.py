"""The filter text of a list: `state:running node:3 rate>10 -stream:north "two words"`.

A term is a field, an operator and a value; words without a field search the text of the rows. All
terms must hold. `:` is "is" for words and numbers and "contains" for texts, `=` is "is exactly",
`>`, `>=`, `<` and `<=` compare numbers and times, a comma separates alternatives, `-` before a term
excludes, quotes keep blanks. A time is a moment (ISO 8601, UTC) or an age: `2h`, `7d`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, TypeVar

from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from controlplane.errors import Invalid
from controlplane.formats.moments import read_moment, shifted
from controlplane.pagination.columns import LOOKUPS, Columns, FieldKind, ListColumn

MAX_LENGTH: Final = 500
MAX_TERMS: Final = 20
_TOKEN: Final = re.compile(
    r'(?P<sign>-)?(?:(?P<field>[A-Za-z_]+)(?P<operator>:|>=|<=|>|<|=))?(?P<value>"[^"]*"|[^\s"]*)'
)
_AGE: Final = re.compile(r"(\d{1,6})(s|m|h|d)")
_UNITS: Final = MappingProxyType(
    {unit: timedelta(seconds=s) for unit, s in (("s", 1), ("m", 60), ("h", 3600), ("d", 86_400))}
)
M = TypeVar("M", bound=Model)


class FilterFault(StrEnum):
    """Why a term of a filter text cannot be read."""

    UNKNOWN_FIELD = "unknown_field"
    OPERATOR = "operator"
    VALUE = "value"
    TOO_LONG = "too_long"
    QUOTE = "quote"


class BadFilter(Invalid):
    """A filter text that cannot be read; `data`: fault, start and end of the term in the text."""

    code = "bad_filter"

    def __init__(self, fault: FilterFault, text: str, start: int, end: int) -> None:
        super().__init__({"filter": [text]})
        self.data = {"fault": str(fault), "start": start, "end": end}


@dataclass(frozen=True)
class FilterTerm:
    """One term; `field`: "" for a word; `values`: alternatives; `start`, `end`: its place."""

    field: str
    operator: str
    values: tuple[str, ...]
    is_excluded: bool
    start: int
    end: int


def terms_of(text: str) -> list[FilterTerm]:
    """Return the terms of a filter text. Raises `BadFilter`."""
    if len(text) > MAX_LENGTH:
        fault = f"Must have at most {MAX_LENGTH} characters"
        raise BadFilter(FilterFault.TOO_LONG, fault, MAX_LENGTH, len(text))
    terms: list[FilterTerm] = []
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        term = _term_at(text, place)
        terms.append(term)
        place = term.end
    if len(terms) > MAX_TERMS:
        last = terms[MAX_TERMS]
        fault = f"Must have at most {MAX_TERMS} terms"
        raise BadFilter(FilterFault.TOO_LONG, fault, last.start, len(text))
    return terms


def _term_at(text: str, place: int) -> FilterTerm:
    match = _TOKEN.match(text, place)
    if match is None or text[match.end() : match.end() + 1] == '"':
        raise BadFilter(FilterFault.QUOTE, "A quotation mark is not closed", place, len(text))
    value = match["value"]
    if not match["field"] and not value.strip('"'):
        raise BadFilter(FilterFault.VALUE, "A term has no text", place, match.end())
    if value.startswith('"'):
        values: tuple[str, ...] = (value.strip('"'),)
    else:
        values = tuple(part for part in value.split(",") if part) if match["field"] else (value,)
    return FilterTerm(
        (match["field"] or "").lower(), match["operator"] or "", values,
        match["sign"] is not None, place, match.end(),
    )  # fmt: skip


def filtered(
    rows: QuerySet[M],
    text: str,
    columns: Columns,
    words: Callable[[str], Q],
    scope: object = None,
) -> QuerySet[M]:
    """Return the rows for which all terms hold; `words`: the condition of a word without a field.

    Raises `BadFilter`.
    """
    known = {column.term: column for column in columns if column.kind}
    for term in terms_of(text):
        condition = _condition(term, known, words, scope)
        rows = rows.exclude(condition) if term.is_excluded else rows.filter(condition)
    return rows


def require_readable(text: str, columns: Columns) -> None:
    """Raise `BadFilter` for the first fault of a filter text."""
    known = {column.term: column for column in columns if column.kind}
    for term in terms_of(text):
        _condition(term, known, lambda _word: Q(), None)


def _condition(
    term: FilterTerm,
    known: Mapping[str, ListColumn],
    words: Callable[[str], Q],
    scope: object,
) -> Q:
    if not term.field:
        return words(term.values[0])
    field = known.get(term.field)
    if field is None:
        text = f"There is no field {term.field}; fields are {', '.join(sorted(known))}"
        raise BadFilter(FilterFault.UNKNOWN_FIELD, text, term.start, term.end)
    if term.operator not in field.operators:
        text = f"{field.term} takes {' '.join(field.operators)}"
        raise BadFilter(FilterFault.OPERATOR, text, term.start, term.end)
    if not term.values:
        text = f"{field.term}{term.operator} has no value"
        raise BadFilter(FilterFault.VALUE, text, term.start, term.end)
    lookup = _lookup(field, term.operator)
    conditions = [field.holds(scope, lookup, _value(field, term, part))
                  for part in term.values]  # fmt: skip
    return Q(*conditions, _connector=Q.OR)


def _lookup(field: ListColumn, operator: str) -> str:
    if operator in LOOKUPS:
        return LOOKUPS[operator]
    return "icontains" if field.kind is FieldKind.TEXT and operator == ":" else "exact"


def _value(field: ListColumn, term: FilterTerm, text: str) -> Any:
    """Return the value of a term in the kind of its field. Raises `BadFilter`."""
    try:
        return _READERS[field.kind](field, text)
    except (ValueError, OverflowError) as error:
        fault = f"{field.term}: {error}"
        raise BadFilter(FilterFault.VALUE, fault, term.start, term.end) from None


def _choice(field: ListColumn, text: str) -> str:
    if text not in field.choices():
        raise ValueError(f"{text} is none of {', '.join(field.choices())}")
    return text


def _number(_field: ListColumn, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text} is not a number") from None
    if not isfinite(number) or abs(number) > 1e15:  # noqa: PLR2004 - beyond what databases compare
        raise ValueError(f"{text} is out of range")
    return int(number) if number.is_integer() else number


def _moment(_field: ListColumn, text: str) -> datetime:
    if age := _AGE.fullmatch(text):
        return shifted(timezone.now(), -int(age[1]) * _UNITS[age[2]])
    try:
        return read_moment(text)
    except ValueError:
        fault = f"{text} is neither a time such as 2026-11-24, from the year 1 to 9999, nor an age"
        raise ValueError(fault) from None


_READERS: Final[Mapping[FieldKind, Callable[[ListColumn, str], Any]]] = MappingProxyType(
    {
        FieldKind.TEXT: lambda _field, text: text,
        FieldKind.CHOICE: _choice,
        FieldKind.NUMBER: _number,
        FieldKind.TIME: _moment,
    }
)
