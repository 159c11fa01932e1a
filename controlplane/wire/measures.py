"""Measures of tasks and operators, the input of planners.

In every batch a node writes two small tables of integers; planners read the last ones.
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import numpy as np
import redis
from numpy.typing import NDArray

from controlplane.wire import keys

# Batches kept per node.
KEPT: Final = 64
_HEAD: Final = struct.Struct("<qqq")
_TASK_COLUMNS: Final = 4
_OPERATOR_COLUMNS: Final = 6
# More than the tasks of any query, so that query and task fit into one number.
_TASKS: Final = 1 << 20
Int64s = NDArray[np.int64]


class TaskMeasure(NamedTuple):
    """A task over the last batches: processed records/s, and present bytes of state."""

    query: int
    task: int
    node: int
    records_per_s: float
    state_bytes: int


@dataclass(frozen=True, slots=True)
class OperatorMeasure:
    """The cost of selection and aggregation on a node for the queries of one computation.

    `query`: the first of the `queries` that share it; `cpu_us`: processor time per record;
    `selectivity`: the share of selected records; `rows`: panes per record.
    """

    query: int
    queries: int
    node: int
    records: int
    cpu_us: float
    selectivity: float
    rows: float


def packed(elapsed_ms: int, tasks: Int64s, operators: Int64s) -> bytes:
    """Return a node's tables of one batch as bytes.

    `tasks`: query, task, records, bytes of state; `operators`: query, queries, records, selected,
    rows, µs of processor time.
    """
    head = _HEAD.pack(elapsed_ms, len(tasks), len(operators))
    return b"".join((head, tasks.astype("<i8").tobytes(), operators.astype("<i8").tobytes()))


def _unpacked(data: bytes) -> tuple[int, Int64s, Int64s]:
    elapsed, tasks, operators = _HEAD.unpack_from(data)
    numbers = np.frombuffer(data, "<i8", offset=_HEAD.size)
    edge = tasks * _TASK_COLUMNS
    return (
        elapsed,
        numbers[:edge].reshape(tasks, _TASK_COLUMNS),
        numbers[edge:].reshape(operators, _OPERATOR_COLUMNS),
    )


def write(client: "redis.Redis", cluster: str, node: int, batch: int, data: bytes) -> None:
    """Store a node's tables of a batch; idempotent."""
    # The id of a replayed batch exists already.
    with suppress(redis.ResponseError):
        key = keys.measures_key(cluster, node)
        client.xadd(key, {"m": data}, id=f"{batch}-0", maxlen=KEPT, approximate=False)


def _tables(client: "redis.Redis", cluster: str, nodes: Sequence[int]) -> Iterator[Any]:
    """Yield node, ms, tasks and operators of the stored batches, the oldest first."""
    pipe = client.pipeline(transaction=False)
    for node in nodes:
        pipe.xrange(keys.measures_key(cluster, node))
    result = [
        (int(position.partition(b"-")[0]), node, fields[b"m"])
        for node, entries in zip(nodes, cast("list[list[Any]]", pipe.execute()), strict=True)
        for position, fields in entries
    ]
    # The newest batch has the present node of a moved task.
    for _, node, data in sorted(result, key=lambda entry: entry[0]):
        yield node, *_unpacked(data)


def read_tasks(client: "redis.Redis", cluster: str, nodes: Sequence[int]) -> list[TaskMeasure]:
    """Return the newest measures of each task with records, on its present node."""
    elapsed = dict.fromkeys(nodes, 0)
    result: list[Int64s] = []
    for node, ms, tasks, _ in _tables(client, cluster, nodes):
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


def read_operators(
    client: "redis.Redis", cluster: str, nodes: Sequence[int]
) -> list[OperatorMeasure]:
    """Return cost and selectivity of each computation on each node, over the last batches."""
    result: dict[tuple[int, int], Int64s] = {}
    shared: dict[tuple[int, int], int] = {}
    for node, _, _, operators in _tables(client, cluster, nodes):
        for row in operators:
            place = int(row[0]), node
            result[place] = result.get(place, 0) + row[2:]
            shared[place] = int(row[1])
    return [
        OperatorMeasure(
            query, shared[query, node], node, int(n), cpu / max(1, n), taken / max(1, n),
            rows / max(1, n),
        )
        for (query, node), (n, taken, rows, cpu) in sorted(result.items())
    ]  # fmt: skip
