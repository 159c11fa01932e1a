"""Counting the finished steps of micro-batches, by which the agent sees that a batch continues.

A step is a split node's read, a node's evaluation, or a sink task. `sink` is the newest batch that
a sink task has begun to write: after the loss of a checkpoint it shows a half-written batch.
"""

from contextlib import suppress
from typing import Final

import redis

from controlplane.wire import keys
from controlplane.wire.foreign.entries import write_hash

SINK: Final = "sink"


def count_step(client: "redis.Redis", cluster: str) -> None:
    """Count a finished step; a step that is not counted only looks like a slow one."""
    with suppress(redis.RedisError):
        client.hincrby(keys.activity_key(cluster), "steps", 1)


def record_sink_batch(client: "redis.Redis", cluster: str, batch: int) -> None:
    """Record that a batch starts to write its results. Raises `redis.RedisError`."""
    write_hash(client, keys.activity_key(cluster), {SINK: batch})
