"""State in transfer: written twice it is written once; read whole or not at all; given back."""

import pytest
import redis

from controlplane.wire.routing.state_transfer import TaskTransfer
from workers.pipeline.exchange import task_states
from workers.pipeline.exchange.task_states import TaskStateMissing

STATES = {(5, 0): {"s|int|": b"abc", "c|int|": b""}, (5, 3): {}, (6, 0): {"s||": b"\x00\xff"}}


def asked(query: int, task: int) -> TaskTransfer:
    return TaskTransfer(query, task, 0, 1)


def test_states_come_back_from_their_bytes() -> None:
    assert task_states.unpack(task_states.pack(STATES)) == STATES
    assert task_states.unpack(task_states.pack({})) == {}


def test_what_is_written_is_read_also_after_a_replay(redis_client: "redis.Redis") -> None:
    for _ in range(2):
        task_states.write(redis_client, "c", 7, STATES)
    wanted = [asked(5, 3), asked(5, 0)]
    found = task_states.read(redis_client, "c", 7, wanted)
    assert found == {task: STATES[task] for task in ((5, 3), (5, 0))}
    assert task_states.read(redis_client, "c", 7, []) == {}


def test_missing_state_is_told_from_no_state(redis_client: "redis.Redis") -> None:
    task_states.write(redis_client, "c", 7, STATES)
    with pytest.raises(
        TaskStateMissing, match=r"task 5\.1, exported by node 0 to node 1 in batch 7"
    ):
        task_states.read(redis_client, "c", 7, [asked(5, 0), asked(5, 1)])


def test_it_is_given_back_once_the_next_batch_is_committed(redis_client: "redis.Redis") -> None:
    task_states.write(redis_client, "c", 7, STATES)
    task_states.write(redis_client, "c", 8, {(5, 0): {}})
    task_states.forget(redis_client, "c", 7)
    assert task_states.read(redis_client, "c", 7, [asked(6, 0)])
    task_states.forget(redis_client, "c", 8)
    with pytest.raises(TaskStateMissing):
        task_states.read(redis_client, "c", 7, [asked(6, 0)])
    assert task_states.read(redis_client, "c", 8, [asked(5, 0)])
    task_states.forget(redis_client, "c", 9)
    assert list(redis_client.scan_iter("*transfer*")) == []
