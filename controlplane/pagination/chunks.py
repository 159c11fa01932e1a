"""Long lists in chunks: databases limit the values of one statement, and hold locks during it."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from django.db.models import QuerySet

T = TypeVar("T")
CHUNK: Final = 500


def chunks(items: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """Yield consecutive parts of a list, of at most `size` items."""
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def delete_in_chunks(rows: QuerySet[Any]) -> int:
    """Delete rows, a chunk per statement; return how many."""
    deleted = 0
    while pks := list(rows.values_list("pk", flat=True)[:CHUNK]):
        rows.model._default_manager.filter(pk__in=pks).delete()  # noqa: SLF001 - Django's public name
        deleted += len(pks)
    return deleted
