"""Expressions as values: the result of parsing and checking a text.

Equal expressions are equal values, so that expressions of several queries are computed once.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


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

    INT widens to DECIMAL, and both widen to FLOAT; NULL is left out. None if one is no number.
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
