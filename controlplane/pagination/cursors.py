"""The cursor: one opaque text with the place where a list goes on, whatever the list is of.

It has the place after which the rows begin, as JSON in base64 for addresses. A page at a cursor has
constant cost, and no duplicates when rows are added or deleted meanwhile.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeVar

from django.core.exceptions import FieldError, ValidationError
from django.db import DataError
from django.db.models import Model, Q, QuerySet
from pydantic import ConfigDict, Field, TypeAdapter

from controlplane.errors import Invalid
from controlplane.pagination.pages import MAX_PER_PAGE, PER_PAGE, text_of, whole

# A place among windows has the bytes of a key, which are cut at 256 a column.
MAX_CURSOR: Final = 6_000
# A number of a row, and what columns of the database hold.
Number = Annotated[int, Field(ge=0, lt=2**63)]
_Scalar = Annotated[int, Field(ge=-(2**63), lt=2**63)] | float | str

T = TypeVar("T")
M = TypeVar("M", bound=Model)


class Cursor(Generic[T]):
    """The cursors of a list, by the type of its places."""

    def __init__(self, kind: Any) -> None:
        config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
        self._places: TypeAdapter[T] = TypeAdapter(kind, config=config)

    def text(self, place: T) -> str:
        """Return the cursor of a place."""
        return base64.urlsafe_b64encode(self._places.dump_json(place)).decode().rstrip("=")

    def place(self, text: str, name: str = "cursor") -> T:
        """Return the place of a cursor. Raises `Invalid` for the parameter of this name."""
        try:
            if len(text) > MAX_CURSOR:
                raise ValueError
            padded = text + "=" * (-len(text) % 4)
            return self._places.validate_json(base64.b64decode(padded, b"-_", validate=True))
        except ValueError:
            raise unusable(name) from None


def unusable(name: str = "cursor") -> Invalid:
    """Return the error for a cursor that is none, or is one of another list or order."""
    return Invalid({name: ["Is not a cursor of this list and order: start without one"]})


@dataclass(frozen=True)
class PageRange:
    """The cursor after which a page starts ("" for the first page), and its number of rows."""

    after: str = ""
    limit: int = PER_PAGE

    @classmethod
    def of(cls, values: Mapping[str, Any], limit: int = PER_PAGE) -> "PageRange":
        """Read cursor and limit of a query string; `limit`: the default. Raises `Invalid`."""
        return cls(text_of(values, "cursor"), whole(values, "limit", limit, MAX_PER_PAGE))


@dataclass(frozen=True)
class Slice(Generic[T]):
    """Rows, and the cursor of the next rows, "" after the last row.

    `total`: the number of all rows, None after the first page.
    """

    rows: Sequence[T]
    next: str
    total: int | None = None


# The columns of an order, and the values of the last row that was seen, its primary key last.
_ROWS: Final = Cursor[tuple[list[str], list[Any]]](tuple[list[str], list[_Scalar]])
# How many rows of a sequence were seen.
_COUNTS: Final = Cursor[int](Number)


def slice_of(
    values: QuerySet[M],
    order: Sequence[str],
    place: PageRange,
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
    last = [_value(shown[-1], column.removeprefix("-")) for column in order] if more else []
    return Slice(row(shown), _ROWS.text((list(order), last)) if more else "", total)


def slice_of_places(
    places: Sequence[int], place: PageRange, row: Callable[[Sequence[int]], Sequence[T]]
) -> Slice[T]:
    """Return the rows at the places after a cursor. Raises `Invalid` for an invalid cursor."""
    begin = _COUNTS.place(place.after) if place.after else 0
    end = min(begin + place.limit, len(places))
    following = _COUNTS.text(end) if end < len(places) else ""
    return Slice(row(places[begin:end]), following, None if place.after else len(places))


def _rows(wanted: QuerySet[M], order: Sequence[str], after: str, limit: int) -> list[M]:
    if not after:
        return list(wanted[:limit])
    columns, values = _ROWS.place(after)
    if columns != list(order) or len(values) != len(order):
        raise unusable()
    try:
        return list(wanted.filter(_behind(order, values))[:limit])
    except (ValidationError, ValueError, TypeError, FieldError, OverflowError, DataError):
        # A forged cursor: the database rejects its values.
        raise unusable() from None


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


def _value(row: Model, column: str) -> Any:
    value: Any = row
    for part in column.split("__"):
        value = getattr(value, part)
    return value if isinstance(value, int | float | str) else str(value)
