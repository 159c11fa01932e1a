"""Pages of rows: what every list selector returns, and how filters are read from a query string."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet

PER_PAGE = 50
MAX_PER_PAGE = 1000
# No id or page is longer; int() of a very long text takes very long.
MAX_DIGITS = 12

T = TypeVar("T")
M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some rows of `total`; `number` counts from 1."""

    rows: Sequence[T]
    total: int
    number: int
    per_page: int

    @property
    def pages(self) -> int:
        """Return how many pages there are, at least one."""
        return max(1, -(-self.total // self.per_page))

    @property
    def has_next(self) -> bool:
        """Tell whether a page follows."""
        return self.number < self.pages

    @property
    def has_previous(self) -> bool:
        """Tell whether a page precedes."""
        return self.number > 1


def page_of(
    rows: QuerySet[M], number: int, per_page: int, row: Callable[[Sequence[M]], Sequence[T]]
) -> Page[T]:
    """Return one page; a number past the end gives the last page."""
    total = rows.count()
    last = max(1, -(-total // per_page))
    number = min(max(1, number), last)
    begin = (number - 1) * per_page
    return Page(row(list(rows[begin : begin + per_page])), total, number, per_page)


def whole(values: Mapping[str, Any], name: str, default: int, maximum: int = 10**6) -> int:
    """Return a whole number of a query string from 1 to maximum; nonsense gives the default."""
    text = str(values.get(name, "")).strip()
    return (
        min(max(1, int(text)), maximum) if text.isdecimal() and len(text) <= MAX_DIGITS else default
    )


def one_of(values: Mapping[str, Any], name: str, allowed: Sequence[str], default: str = "") -> str:
    """Return a word of a query string if it is allowed, else the default."""
    word = str(values.get(name, "")).strip()
    return word if word in allowed else default


def optional_whole(values: Mapping[str, Any], name: str) -> int | None:
    """Return a whole number of a query string, None where there is none."""
    text = str(values.get(name, "")).strip()
    return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else None
