"""Pages: how the window rows of many small tasks lie in the state store.

One state-store value per task costs a round trip to the JVM per task and batch. A node's tasks
share a fixed number of pages instead; the rows of one task are found in its page by query id, so
a single task can still be taken out and handed on.
"""

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from workers.pipeline.windows import NO_ROWS, Column, Int64s, Rows

PAGES: Final = 16

Load = Callable[[int], bytes | None]


def page_of(queries: Int64s) -> Int64s:
    """Return the page of each query."""
    return np.asarray(queries % PAGES)


def pages_to_visit(added: Rows, batch: int) -> list[int]:
    """Return the pages a batch must load: those it adds to, and one more in turn.

    The turn makes sure that rows of departed queries leave the state within `PAGES` batches.
    """
    touched = np.unique(page_of(added[:, Column.QUERY])).tolist()
    return sorted({*touched, batch % PAGES})


def load_rows(load: Load, pages: Iterable[int]) -> Rows:
    """Return the rows of `pages` together."""
    found = [decode(blob) for page in pages if (blob := load(page))]
    return np.concatenate(found) if found else NO_ROWS


def split_rows(rows: Rows, pages: Iterable[int]) -> dict[int, bytes]:
    """Return the bytes of each page, empty for a page without rows."""
    owner = page_of(rows[:, Column.QUERY])
    return {page: encode(rows[owner == page]) for page in pages}


def encode(rows: Rows) -> bytes:
    """Return rows as bytes."""
    return rows.astype("<i8", copy=False).tobytes()


def decode(blob: bytes) -> Rows:
    """Return the rows that `encode` wrote."""
    return np.frombuffer(blob, "<i8").reshape(-1, len(Column)).astype(np.int64, copy=False)
