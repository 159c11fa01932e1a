"""Lists: the filters of a query string, and the pages of the filtered rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Generic, Self, TypeVar

from django.db.models import Model, Q, QuerySet

from controlplane.errors import Fields, Invalid
from controlplane.pagination.columns import Columns
from controlplane.pagination.cursors import PageRange, Slice, slice_of, slice_of_places
from controlplane.pagination.filter_text import filtered
from controlplane.pagination.pages import (
    MAX_PER_PAGE,
    PER_PAGE,
    WHOLE_SCHEMA,
    Page,
    one_of,
    optional_whole,
    page_range,
    read_by_id,
    text_of,
    whole,
)

T = TypeVar("T")
M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a query string: how it is read, and its JSON schema for OpenAPI."""

    name: str
    read: Callable[[Mapping[str, Any]], Any]
    schema: Callable[[], Mapping[str, Any]]


def text_filter(name: str, longest: int = 100) -> Any:
    """Declare a filter that is a text of the query string of at most `longest` characters."""
    return _filter(
        "",
        Parameter(
            name,
            lambda values: text_of(values, name, longest),
            lambda: {"type": "string", "maxLength": longest},
        ),
    )


def choice_filter(name: str, allowed: Callable[[], Sequence[str]], default: str = "") -> Any:
    """Declare a filter that is one of the allowed words; the default if it is missing or empty."""
    return _filter(
        default,
        Parameter(
            name,
            lambda values: one_of(values, name, allowed(), default),
            lambda: {"type": "string", "enum": ["", *allowed()]},
        ),
    )


def whole_filter(name: str) -> Any:
    """Declare a filter that is an integer of the query string, None if it is missing."""
    return _filter(
        None, Parameter(name, lambda values: optional_whole(values, name), lambda: WHOLE_SCHEMA)
    )


def page_parameter(name: str, default: int, maximum: int = 10**6) -> Parameter:
    """Return a parameter that is an integer from 1 to `maximum`."""
    return Parameter(
        name,
        lambda values: whole(values, name, default, maximum),
        lambda: {"type": "integer", "minimum": 1, "maximum": maximum},
    )


def _filter(default: Any, parameter: Parameter) -> Any:
    return field(default=default, metadata={"parameter": parameter})


@dataclass(frozen=True)
class Filters:
    """The filters of a list, and the number and size of the requested page.

    A subclass declares its filters with `text_filter`, `choice_filter` and `whole_filter`.
    """

    page: int = _filter(1, page_parameter("page", 1))
    per_page: int = _filter(PER_PAGE, page_parameter("per_page", PER_PAGE, MAX_PER_PAGE))

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """Return the parameters of the query string by the name of their field."""
        return {item.name: item.metadata["parameter"] for item in fields(cls) if item.metadata}

    @classmethod
    def of(cls, values: Mapping[str, Any], **given: Any) -> Self:
        """Read the filters of a query string; `given`: fields that are not read from it.

        Raises `Invalid` with every invalid value.
        """
        read: dict[str, Any] = {}
        faults: Fields = {}
        for name, parameter in cls.parameters().items():
            if name in given:
                continue
            try:
                read[name] = parameter.read(values)
            except Invalid as invalid:
                faults |= invalid.fields
        if faults:
            raise Invalid(faults)
        return cls(**read | given)


def selected(
    rows: QuerySet[M],
    filters: Filters,
    columns: Columns,
    words: Callable[[str], Q],
    scope: object = None,
) -> QuerySet[M]:
    """Return the rows that the filters of a list select; arguments as of `filtered`.

    A filter with the name of a column, or of its term, selects the rows with its value; `q` is a
    word, `filter` a filter text. Raises `BadFilter`.
    """
    named = {name: column for column in columns for name in (column.name, column.term)}
    for field_name, parameter in filters.parameters().items():
        value = getattr(filters, field_name)
        if value in ("", None):
            continue
        if parameter.name == "filter":
            rows = filtered(rows, value, columns, words, scope)
        elif parameter.name == "q":
            rows = rows.filter(words(value))
        elif parameter.name in named:
            rows = rows.filter(named[parameter.name].holds(scope, "exact", value))
    return rows


# The first page of a list that has no filters.
NO_FILTERS: Final = Filters()


@dataclass(frozen=True)
class Listing(Generic[M, T]):
    """Filtered rows in an order, by page number or after a cursor.

    `order`: columns that are never null, the last one "pk". `row`: converts the rows of a page.
    `by_id`: True for wide rows with an index that has the columns of filters and order. `counted`:
    the same rows without what only the order needs.
    """

    rows: QuerySet[M]
    order: Sequence[str]
    row: Callable[[Sequence[M]], Sequence[T]]
    filters: Filters = NO_FILTERS
    by_id: bool = False
    counted: QuerySet[M] | None = None

    @property
    def page(self) -> Page[T]:
        """Return the page that the filters name."""
        ordered = self.rows.order_by(*self.order)
        total = (self.rows if self.counted is None else self.counted).count()
        per_page = self.filters.per_page
        number, places = page_range(total, self.filters.page, per_page)
        part = ordered[places.start : places.stop]
        rows = read_by_id(ordered, part) if self.by_id else list(part)
        return Page(self.row(rows), total, number, per_page)

    def after(self, place: PageRange) -> Slice[T]:
        """Return the rows after a cursor. Raises `Invalid` for an invalid cursor."""
        return slice_of(self.rows, self.order, place, self.row)


@dataclass(frozen=True)
class PlaceListing(Generic[T]):
    """Rows that have places in a sequence, such as the actions of a plan.

    `row`: makes the rows at some of the places.
    """

    places: Sequence[int]
    row: Callable[[Sequence[int]], Sequence[T]]
    filters: Filters = NO_FILTERS

    @property
    def page(self) -> Page[T]:
        """Return the page that the filters name."""
        total, per_page = len(self.places), self.filters.per_page
        number, shown = page_range(total, self.filters.page, per_page)
        return Page(self.row(self.places[shown.start : shown.stop]), total, number, per_page)

    def after(self, place: PageRange) -> Slice[T]:
        """Return the rows after a cursor. Raises `Invalid` for an invalid cursor."""
        return slice_of_places(self.places, place, self.row)
