"""Long lists in chunks: databases limit the values of one statement, and hold locks during it."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from django.db.models import QuerySet

T = TypeVar("T")
CHUNK: Final = 500


def chunks(items: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """Yield consecutive parts of a list, of at most `size` items."""
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def delete_in_chunks(rows: QuerySet[Any], most: float = math.inf) -> int:
    """Delete rows, at most `most`, a chunk per statement; return how many."""
    deleted = 0
    manager = rows.model._default_manager  # noqa: SLF001 - Django's public name
    while deleted < most and (pks := list(rows.order_by().values_list("pk", flat=True)[:CHUNK])):
        manager.filter(pk__in=pks).delete()
        deleted += len(pks)
    return deleted
