"""Expressions as values: the result of parsing and checking a text.

Equal expressions are equal values, so that expressions of several queries are computed once.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, localcontext
from enum import StrEnum
from typing import Final

DECIMAL_SCALE: Final = 9
_PRECISION: Final = 38
_FIRST_DAY: Final = date(1970, 1, 1)


class Kind(StrEnum):
    """What an expression yields for each record. `NULL` is the kind of the bare word null."""

    INT = "int"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOL = "bool"
    TEXT = "text"
    TIME = "time"
    DATE = "date"
    NULL = "null"


NUMBERS = (Kind.INT, Kind.FLOAT, Kind.DECIMAL)


def widest_number(kinds: Iterable[Kind]) -> Kind | None:
    """Return the narrowest kind that holds the numbers of all these kinds.

    INT widens to DECIMAL, and both widen to FLOAT; NULL is left out. None if one is not a number.
    """
    known = {kind for kind in kinds if kind is not Kind.NULL}
    if known <= {Kind.INT}:
        return Kind.INT
    if known <= {Kind.INT, Kind.DECIMAL}:
        return Kind.DECIMAL
    return Kind.FLOAT if known <= set(NUMBERS) else None


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; a time is milliseconds since the epoch, a date days since the epoch."""

    value: int | float | Decimal | bool | str | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the record."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator, by its name in `functions.py` or among the registered ones."""

    function: str
    arguments: tuple["Expression", ...]
    kind: Kind


Expression = Literal | Column | Call


def columns_in(expression: Expression) -> Iterator[Column]:
    """Yield the columns that an expression reads, with repetitions."""
    match expression:
        case Column():
            yield expression
        case Call():
            for argument in expression.arguments:
                yield from columns_in(argument)


def size_of(expression: Expression, sizes: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Return how many operations an expression has, and how deep it is.

    `sizes`: the same for columns that are expressions, by name.
    """
    match expression:
        case Column():
            return sizes.get(expression.name, (1, 1))
        case Call():
            below = [size_of(argument, sizes) for argument in expression.arguments]
            depth = 1 + max((deep for _, deep in below), default=0)
            return 1 + sum(operations for operations, _ in below), depth
    return 1, 1


def milliseconds(text: str) -> int:
    """Return the milliseconds since 1970 of an ISO 8601 time, UTC if it has no zone.

    Raises `ValueError`.
    """
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def days(text: str) -> int:
    """Return the days since 1970-01-01 of an ISO 8601 date. Raises `ValueError`."""
    return (date.fromisoformat(text.strip()) - _FIRST_DAY).days


def decimal_of(text: str) -> Decimal:
    """Return a decimal number, rounded half to even to 9 digits after the point.

    Raises `ValueError` for text that is not a finite number of at most 29 digits before the point.
    """
    with localcontext(prec=_PRECISION, rounding=ROUND_HALF_EVEN):
        try:
            return Decimal(text.strip()).quantize(Decimal(1).scaleb(-DECIMAL_SCALE))
        except InvalidOperation:
            raise ValueError(f"{text!r} is not a decimal") from None


def _float_of(text: str) -> float:
    number = float(text)
    # One object, so that equal expressions over NaN are equal values.
    return math.nan if math.isnan(number) else number


def _whole_of(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{text} is beyond 64 bits")
    return number


# By kind: how a constant text is read, and what it should look like.
_READERS: Final[Mapping[Kind, tuple[Callable[[str], int | float | Decimal], str]]] = {
    Kind.TIME: (milliseconds, "a time such as '2008-05-17 10:00'"),
    Kind.DATE: (days, "a date such as '2008-05-17'"),
    Kind.DECIMAL: (
        decimal_of,
        "a decimal such as '12.50', with at most 29 digits before the point",
    ),
    Kind.FLOAT: (_float_of, "a number such as '1.5', 'NaN' or 'Infinity'"),
    Kind.INT: (_whole_of, "a whole number of 64 bits such as '12'"),
}


def literal_of(text: str, kind: Kind) -> Literal:
    """Return a text as a constant of a kind.

    Raises `ValueError` with the expected form.
    """
    read, wanted = _READERS[kind]
    try:
        return Literal(read(text), kind)
    except ValueError:
        raise ValueError(f"{text!r} is not {wanted}") from None
