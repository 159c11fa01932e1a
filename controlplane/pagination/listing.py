"""Lists: the filters of a query string, and the pages of the filtered rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, Self, TypeVar

from django.db.models import Model, QuerySet

from controlplane.pagination.cursors import Place, Slice, slice_of
from controlplane.pagination.pages import (
    MAX_PER_PAGE,
    PER_PAGE,
    Page,
    one_of,
    optional_whole,
    page_of,
    whole,
)

T = TypeVar("T")
M = TypeVar("M", bound=Model)


def text_filter(name: str, longest: int = 100) -> Any:
    """Declare a filter that is a text of the query string, cut to a length."""
    return _filter("", lambda values: str(values.get(name, "")).strip()[:longest])


def choice_filter(name: str, allowed: Callable[[], Sequence[str]], default: str = "") -> Any:
    """Declare a filter that is one of the allowed words, else the default."""
    return _filter(default, lambda values: one_of(values, name, allowed(), default))


def whole_filter(name: str) -> Any:
    """Declare a filter that is an integer of the query string, None if it is missing."""
    return _filter(None, lambda values: optional_whole(values, name))


def _filter(default: Any, read: Callable[[Mapping[str, Any]], Any]) -> Any:
    return field(default=default, metadata={"read": read})


@dataclass(frozen=True)
class Filters:
    """The filters of a list, and the number and size of the requested page.

    A subclass declares its filters with `text_filter`, `choice_filter` and `whole_filter`.
    """

    page: int = _filter(1, lambda values: whole(values, "page", 1))
    per_page: int = _filter(
        PER_PAGE, lambda values: whole(values, "per_page", PER_PAGE, MAX_PER_PAGE)
    )

    @classmethod
    def of(cls, values: Mapping[str, Any], **given: Any) -> Self:
        """Read the filters of a query string; `given`: fields that are not read from it."""
        read = {item.name: item.metadata["read"](values) for item in fields(cls) if item.metadata}
        return cls(**read | given)


@dataclass(frozen=True)
class Listing(Generic[M, T]):
    """Filtered rows in an order, by page number or after a cursor.

    `order`: columns that are never null, the last one "pk". `row`: converts the rows of a page.
    """

    rows: QuerySet[M]
    order: Sequence[str]
    row: Callable[[Sequence[M]], Sequence[T]]
    filters: Filters = Filters()

    @property
    def page(self) -> Page[T]:
        """Return the page that the filters name."""
        ordered = self.rows.order_by(*self.order)
        return page_of(ordered, self.filters.page, self.filters.per_page, self.row)

    def after(self, place: Place) -> Slice[T]:
        """Return the rows after a cursor. Raises `Invalid` for an invalid cursor."""
        return slice_of(self.rows, self.order, place, self.row)
