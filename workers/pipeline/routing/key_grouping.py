"""The key grouping of a route: how the keys of a query find their task.

The names and parameters are those of `algorithms.partitioning`. Plain key grouping depends on the
key only: every node evaluates it. All others are evaluated by the split node, which has a state for
them, and the record carries its task; then a key may have tasks on several nodes, whose results are
merged.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from algorithms.partitioning.catalog import GROUPINGS, canonical_text, grouping_of, parsed_text
from controlplane.wire.query import Window
from workers.pipeline.engine.hashing import Hashes

if TYPE_CHECKING:
    from algorithms.partitioning.grouping import Grouping

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BacklogLoad:
    """The load of a node: records in its backlog, and its utilisation."""

    waiting: int
    utilisation: float


# The reports of all nodes after an earlier batch; the offset names them, so a replay sees them.
NodeLoads = Mapping[int, BacklogLoad]


@dataclass(frozen=True, slots=True)
class KeyMapping:
    """A mapping of keys to tasks.

    `text`: as the route has it, in its canonical form; empty for plain key grouping. `window`: that
    of the query, if the grouping assigns panes to tasks.
    """

    text: str
    window: Window | None = None

    @property
    def by_key(self) -> bool:
        """Return whether the key alone determines the task, so that every node can compute it."""
        return not self.text

    @property
    def needs_times(self) -> bool:
        """Return whether the grouping looks at the event times of records."""
        return self.window is not None

    @property
    def is_stateful(self) -> bool:
        """Return whether decisions depend on earlier records."""
        return GROUPINGS[parsed_text(self.text)[0]].stateful

    def load(self) -> "Grouping[Any]":
        """Return the grouping itself; the first call imports compiled code."""
        grouping: Grouping[Any] = _loaded(self)
        return grouping


PLAIN: Final = KeyMapping("")


def tasks_by_key(hashes: Hashes, tasks: int) -> Int64s:
    """Return the hash of each key modulo the number of tasks (paper 004, section 3.1)."""
    return np.asarray((hashes % np.uint64(tasks)).astype(np.int64))


@cache
def key_grouping_of(text: str, window: Window | None = None) -> KeyMapping:
    """Return the key grouping of a route without importing its code; `window`: of its query.

    Raises `UnknownGrouping` for an unknown name, `BadParameters` for a text that is not an object.
    """
    name, parameters = parsed_text(text)
    canonical = canonical_text(name, parameters)
    if not canonical:
        return PLAIN
    return KeyMapping(canonical, window if GROUPINGS[name].needs_times else None)


@cache
def _loaded(key_grouping: KeyMapping) -> Any:
    grouping, window = grouping_of(key_grouping.text), key_grouping.window
    if window is None:
        return grouping
    # Whatever the text has: panes that are not those of the query would be divided by tasks.
    of_query = {"window_ms": window.size_ms, "slide_ms": window.slide_ms}
    return type(grouping).from_mapping(grouping.to_mapping() | of_query)
