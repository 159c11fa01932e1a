"""Measures of tasks, the input of planners.

In every batch a node writes a small table of integers; planners read the last ones.
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
import redis
from numpy.typing import NDArray

from controlplane.wire import keys
from controlplane.wire.foreign.entries import EntryLocation, decoded, values_of

# Batches kept per node.
KEPT: Final = 64
# Milliseconds, and number of tasks.
_HEAD: Final = struct.Struct("<qq")
_TASK_COLUMNS: Final = 4
# More than the tasks of any query, so that query and task fit into one number.
_TASKS: Final = 1 << 20
Int64s = NDArray[np.int64]


class TaskMeasure(NamedTuple):
    """A task over the last batches: evaluations/s, and present bytes of state."""

    query: int
    task: int
    node: int
    evaluations_per_s: float
    state_bytes: int


def packed(elapsed_ms: int, tasks: Int64s) -> bytes:
    """Return a node's table of one batch as bytes: query, task, records, bytes of state."""
    return _HEAD.pack(elapsed_ms, len(tasks)) + tasks.astype("<i8").tobytes()


def _unpacked(data: bytes) -> tuple[int, Int64s]:
    elapsed, tasks = _HEAD.unpack_from(data)
    numbers = np.frombuffer(data, "<i8", tasks * _TASK_COLUMNS, _HEAD.size)
    return elapsed, numbers.reshape(tasks, _TASK_COLUMNS)


def write(client: "redis.Redis", cluster: str, node: int, batch: int, data: bytes) -> None:
    """Store a node's table of a batch; idempotent."""
    # The id of a replayed batch exists already.
    with suppress(redis.ResponseError):
        key = keys.measures_key(cluster, node)
        client.xadd(key, {"m": data}, id=f"{batch}-0", maxlen=KEPT, approximate=False)


def _tables(client: "redis.Redis", cluster: str, nodes: Sequence[int]) -> Iterator[Any]:
    """Yield node, ms and tasks of the stored batches, the oldest first."""
    pipe = client.pipeline(transaction=False)
    for node in nodes:
        pipe.xrange(keys.measures_key(cluster, node))
    place = EntryLocation.MEASURES
    result = [
        (int(position.partition(b"-")[0]), node, *table)
        for node, entries in zip(nodes, values_of(pipe), strict=True)
        for position, fields in (entries if isinstance(entries, list) else ())
        if (table := decoded(client, cluster, place, _unpacked, fields.get(b"m"), position))
    ]
    # The newest batch has the present node of a moved task.
    for _, node, elapsed_ms, tasks in sorted(result, key=lambda entry: entry[0]):
        yield node, elapsed_ms, tasks


def read_tasks(client: "redis.Redis", cluster: str, nodes: Sequence[int]) -> list[TaskMeasure]:
    """Return the newest measures of each task with records, on its present node."""
    elapsed = dict.fromkeys(nodes, 0)
    result: list[Int64s] = []
    for node, ms, tasks in _tables(client, cluster, nodes):
        elapsed[node] += ms
        result.append(np.column_stack([tasks, np.full(len(tasks), node, np.int64)]))
    if not result:
        return []
    rows = np.concatenate(result)
    # One number per task; its last row has its node and state.
    places, first, of = np.unique(
        rows[::-1, 0] * _TASKS + rows[::-1, 1], return_index=True, return_inverse=True
    )
    records = np.bincount(of, rows[::-1, 2], len(places))
    last = rows[::-1][first]
    seconds = np.array([max(1e-3, elapsed[node] / 1000) for node in last[:, 4].tolist()])
    columns = zip(last[:, [0, 1, 4, 3]].tolist(), (records / seconds).tolist(), strict=True)
    return [
        TaskMeasure(query, task, node, rate, size) for (query, task, node, size), rate in columns
    ]
