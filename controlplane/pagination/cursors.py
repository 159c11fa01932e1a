"""Pagination by cursor: pages of constant cost, without duplicates when rows are added.

A cursor names the last row that was seen by the columns of the order, the primary key last; the
next page starts after it, whatever rows are added or deleted meanwhile. A cursor is opaque to
callers, and valid for one order.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Generic, TypeVar

from django.core.exceptions import FieldError, ValidationError
from django.db import DataError
from django.db.models import Model, Q, QuerySet

from controlplane.errors import Invalid
from controlplane.pagination.pages import MAX_PER_PAGE, PER_PAGE, text_of, whole

# The longest cursor: base64 of the values of an order.
MAX_CURSOR: Final = 1000

T = TypeVar("T")
M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Place:
    """The cursor after which a page starts ("" for the first page), and its number of rows."""

    after: str = ""
    limit: int = PER_PAGE

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Place":
        """Read cursor and limit (or per_page) of a query string. Raises `Invalid`."""
        per_page = whole(values, "per_page", PER_PAGE, MAX_PER_PAGE)
        limit = whole(values, "limit", per_page, MAX_PER_PAGE)
        return cls(text_of(values, "cursor"), limit)


@dataclass(frozen=True)
class Slice(Generic[T]):
    """Rows, and the cursor of the next rows, "" after the last row.

    `total`: the number of all rows, None after the first page.
    """

    rows: Sequence[T]
    next: str
    total: int | None = None


def slice_of(
    values: QuerySet[M],
    order: Sequence[str],
    place: Place,
    row: Callable[[Sequence[M]], Sequence[T]],
) -> Slice[T]:
    """Return the rows after a cursor; `order`: columns that are never null, the last one "pk".

    Raises `Invalid` for an invalid cursor, or one of another order.
    """
    # One more row shows whether there is a next page, without another query.
    rows = _rows(values.order_by(*order), order, place.after, place.limit + 1)
    shown = rows[: place.limit]
    more = len(rows) > place.limit
    total = None
    if not place.after:
        # A single page needs no count.
        total = values.count() if more else len(rows)
    return Slice(row(shown), _written(order, shown[-1]) if more else "", total)


def _rows(wanted: QuerySet[M], order: Sequence[str], after: str, limit: int) -> list[M]:
    if not after:
        return list(wanted[:limit])
    values = _read(after, order)
    try:
        return list(wanted.filter(_behind(order, values))[:limit])
    except (ValidationError, ValueError, TypeError, FieldError, OverflowError, DataError):
        # A forged cursor: the database rejects its values.
        raise _bad() from None


def _behind(order: Sequence[str], values: Sequence[Any]) -> Q:
    """Return the condition for rows after values: (a, b) > (x, y) is a > x, or a = x and b > y.

    The condition on the first column lets the database use an index on the order.
    """
    behind = Q()
    for column, value in reversed(list(zip(order, values, strict=True))):
        name, descending = column.removeprefix("-"), column.startswith("-")
        further = Q(**{f"{name}__{'lt' if descending else 'gt'}": value})
        behind = further | (Q(**{name: value}) & behind) if behind else further
    first, value = order[0], values[0]
    bound = f"{first.removeprefix('-')}__{'lte' if first.startswith('-') else 'gte'}"
    return Q(**{bound: value}) & behind


def _written(order: Sequence[str], last: Model) -> str:
    values = [_value(last, column.removeprefix("-")) for column in order]
    text = json.dumps([list(order), values], separators=(",", ":"), default=_plain)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(cursor: str, order: Sequence[str]) -> list[Any]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        if len(cursor) > MAX_CURSOR:
            raise _bad()
        made_for, values = json.loads(base64.urlsafe_b64decode(padded.encode("ascii")))
    except (ValueError, TypeError, RecursionError):
        raise _bad() from None
    scalars = isinstance(values, list) and all(isinstance(v, str | int | float) for v in values)
    if made_for != list(order) or not scalars or len(values) != len(order):
        raise _bad()
    return list(values)


def _value(row: Model, column: str) -> Any:
    value: Any = row
    for part in column.split("__"):
        value = getattr(value, part)
    return value


def _plain(value: Any) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value)


def _bad() -> Invalid:
    return Invalid({"cursor": ["Is not a cursor of this list and order: start without one"]})
