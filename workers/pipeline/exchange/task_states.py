"""State on its way from one node to another: written by the sink, read by the next batch.

The batch in which a task is exported ends with its state in Redis, under the batch's number; the
next batch is under the same routing version and begins by importing the state. A replay of either
writes and reads the same bytes. What was imported is forgotten once that batch is committed.
"""

import json
import struct
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import redis

from controlplane.wire import keys
from controlplane.wire.routing.state_transfer import TaskTransfer
from workers.pipeline.engine.assignment.tasks import Task

_HEAD: Final = struct.Struct("<I")
# Tasks without state are exported too, so that missing state is distinguished from no state.
_MARK: Final = b"."

States = Mapping[Task, Mapping[str, bytes]]


class TaskStateMissing(Exception):
    """The state of a task that was exported is not in Redis."""

    def __init__(self, transfer: TaskTransfer, batch: int) -> None:
        super().__init__(
            f"the state of task {transfer.query}.{transfer.task}, exported by node "
            f"{transfer.source} to node "
            f"{transfer.target} in batch {batch}, is not in Redis: it has lost data"
        )


def pack(states: States) -> bytes:
    """Return states as bytes, for the way from a node to the sink."""
    head: list[Any] = []
    parts: list[bytes] = []
    for (query, task), forms in states.items():
        head.append([query, task, [[name, len(data)] for name, data in forms.items()]])
        parts += forms.values()
    text = json.dumps(head, separators=(",", ":")).encode()
    return b"".join((_HEAD.pack(len(text)), text, *parts))


def unpack(data: bytes) -> dict[Task, dict[str, bytes]]:
    """Return the states that `pack` wrote."""
    (size,) = _HEAD.unpack_from(data)
    offset = _HEAD.size + size
    result: dict[Task, dict[str, bytes]] = {}
    for query, task, forms in json.loads(data[_HEAD.size : offset]):
        state = result.setdefault((query, task), {})
        for name, length in forms:
            state[name] = data[offset : offset + length]
            offset += length
    return result


def write(client: "redis.Redis", cluster: str, batch: int, states: States) -> None:
    """Store the states that tasks export in a batch; writing them again changes nothing."""
    if not states:
        return
    pipe = client.pipeline(transaction=True)
    for (query, task), forms in states.items():
        key = keys.transfer_key(cluster, batch, query, task)
        fields: dict[Any, Any] = {_MARK: b"", **forms}
        pipe.hset(key, mapping=fields)
        pipe.sadd(keys.transfers_key(cluster, batch), f"{query}.{task}")
    pipe.sadd(keys.transfer_batches_key(cluster), batch)
    pipe.execute()


def read(
    client: "redis.Redis", cluster: str, batch: int, wanted: Sequence[TaskTransfer]
) -> dict[Task, dict[str, bytes]]:
    """Return the states that tasks exported in a batch. Raises `TaskStateMissing`."""
    pipe = client.pipeline(transaction=False)
    for item in wanted:
        pipe.hgetall(keys.transfer_key(cluster, batch, item.query, item.task))
    result: dict[Task, dict[str, bytes]] = {}
    for value, fields in zip(wanted, cast("list[dict[bytes, bytes]]", pipe.execute()), strict=True):
        if _MARK not in fields:
            raise TaskStateMissing(value, batch)
        forms = {name.decode(): data for name, data in fields.items() if name != _MARK}
        result[value.query, value.task] = forms
    return result


def forget(client: "redis.Redis", cluster: str, committed: int) -> None:
    """Give back what batches before the committed one had exported: it was imported."""
    index = keys.transfer_batches_key(cluster)
    batches = sorted(map(int, cast("Iterable[bytes]", client.smembers(index))))
    for batch in batches[: bisect_left(batches, committed)]:
        members = keys.transfers_key(cluster, batch)
        names = cast("Iterable[bytes]", client.smembers(members))
        tasks = [name.decode().split(".") for name in names]
        states = [keys.transfer_key(cluster, batch, int(query), int(task)) for query, task in tasks]
        client.delete(members, *states)
        client.srem(index, batch)
