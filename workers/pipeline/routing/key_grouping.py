"""How the keys of a query find their task: the replaceable part that the routing table carries.

A key grouping that decides by the key alone is evaluated by every node for itself. One that also
looks at loads decides at the split node, and the record carries its task; then a key may have tasks
on several nodes, whose results are merged.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.pipeline.engine.hashing import Hashes

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """The load of a node: records in its backlog, and its utilisation."""

    waiting: int
    utilisation: float


# The reports of all nodes after an earlier batch; the offset names them, so a replay sees them.
NodeLoads = Mapping[int, NodeLoad]


@dataclass(frozen=True, slots=True)
class KeyGrouping:
    """A mapping of keys to tasks.

    `by_key`: whether it depends on the key only. `tasks_of`: returns the task of each record from
    the hash of its key, the nodes of the tasks, and the loads of nodes.
    """

    by_key: bool
    tasks_of: Callable[[Hashes, tuple[int, ...], NodeLoads], Int64s]


def _tasks_by_hash(hashes: Hashes, owners: tuple[int, ...], _loads: NodeLoads) -> Int64s:
    """Return the hash of each key modulo the number of tasks (paper 004, section 3.1)."""
    return np.asarray((hashes % np.uint64(len(owners))).astype(np.int64))


def _less_loaded_tasks(hashes: Hashes, owners: tuple[int, ...], loads: NodeLoads) -> Int64s:
    """Return the less loaded of two tasks: partial key grouping (paper 002, section 2).

    The load is what the split node sent in this batch, on top of what waits at the task's node.
    """
    # Compiled code is slow to import and large: only who uses it has it.
    from algorithms.partitioning.two_choices import choices_of, less_loaded  # noqa: PLC0415

    there = np.array(owners)
    load = np.zeros(len(owners))
    for node, signal in loads.items():
        selected = there == node
        load[selected] = signal.waiting / max(1, int(selected.sum()))
    return less_loaded(*choices_of(hashes, len(owners)), load)


_KEY_GROUPINGS: Final[Mapping[str, KeyGrouping]] = {
    "hash": KeyGrouping(by_key=True, tasks_of=_tasks_by_hash),
    "two_choices": KeyGrouping(by_key=False, tasks_of=_less_loaded_tasks),
}


@cache
def key_grouping_of(text: str) -> KeyGrouping:
    """Return the key grouping of a route. Raises `LookupError` for an unknown name."""
    kind = json.loads(text)["kind"] if text else "hash"
    if kind not in _KEY_GROUPINGS:
        raise LookupError(f"there is no key grouping {kind}; there are {', '.join(_KEY_GROUPINGS)}")
    return _KEY_GROUPINGS[kind]
