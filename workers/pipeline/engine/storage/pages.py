"""Pages: the layout of the rows of many small tasks in the state store.

One value per task would cost a round trip to the JVM per task and batch. A node's tasks share a
fixed number of pages per state schema of rows instead; the rows of one task are found in its page,
so a single task can still be exported.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from controlplane.wire.aggregates.state_schema import StateSchema, from_bytes, to_bytes
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.evaluation.records import Int64s
from workers.pipeline.engine.store import Store

PAGES: Final = 16
SIZES: Final = "sizes"


def page_of(query: Int64s, task: Int64s) -> Int64s:
    """Return the page of each task."""
    return np.asarray((query + task) % PAGES)


def rows_of(queries: Collection[int], rows: Any) -> Any:
    """Return the rows of these queries."""
    selected = np.isin(np.asarray(rows["query"]), list(queries))
    return rows if selected.all() else rows.filter(pa.array(selected))


@dataclass
class Pages:
    """The pages of one state schema in a store."""

    store: Store
    form: StateSchema
    name: str
    sizes: dict[str, int] = field(default_factory=dict)

    def load(self, pages: Iterable[int]) -> Any:
        """Return the rows of these pages together."""
        result = [
            from_bytes(self.form, self.store.get(self._key(page)))
            for page in pages
            if self.sizes.get(self._key(page))
        ]
        return pa.concat_tables([self.form.arrow.empty_table(), *result])

    def save(self, rows: Any, pages: Iterable[int]) -> None:
        """Write the rows of these pages; a page without rows is removed."""
        owner = page_of(np.asarray(rows["query"]), np.asarray(rows["task"]))
        result = {}
        for page in pages:
            selected = rows.filter(pa.array(owner == page))
            result[self._key(page)] = to_bytes(selected) if len(selected) else b""
        # Nothing is written before all of it can be.
        for key, data in result.items():
            if data:
                self.store.put(key, data)
                self.sizes[key] = len(data)
            elif self.sizes.pop(key, 0):
                self.store.remove(key)

    def size_of(self, pages: Iterable[int]) -> int:
        """Return how many bytes these pages hold."""
        return sum(self.sizes.get(self._key(page), 0) for page in pages)

    def _key(self, page: int) -> str:
        return f"{self.name}/{page}"
