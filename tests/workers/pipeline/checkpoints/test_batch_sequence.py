"""Where a new checkpoint begins after a loss: batch numbers grow, no record is read twice."""

import json

import redis

from controlplane.wire import keys
from controlplane.wire.generation import Generation, write_generation
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.log.values import START, Block, LogPosition
from workers.pipeline.checkpoints.bootstrap import first_batch, first_position


def finish(client: "redis.Redis", batch: int, end: str) -> None:
    row = {"batch": batch, "version": 1, "end": end}
    client.xadd(keys.telemetry_key("ny"), {"t": json.dumps(row)}, id=f"{batch}-0")


def test_batch_numbers_grow_over_each_loss(redis_client: "redis.Redis") -> None:
    """The checkpoint, Redis, and both."""
    assert first_batch(redis_client, "ny") == 0
    finish(redis_client, 70, START)
    assert first_batch(redis_client, "ny") > 70
    redis_client.flushdb()
    write_generation(redis_client, "ny", Generation("g", 1, 70))
    assert first_batch(redis_client, "ny") > 70


def test_a_finished_batch_that_is_not_marked_is_not_read_again(
    redis_client: "redis.Redis",
) -> None:
    """Spark marks it when it plans the next one; without its state it would count twice."""
    log = RedisLog(redis_client, "ny")
    first = log.append({1: Block(4, b"x", 5)})
    second = log.append({1: Block(3, b"x", 5)})
    log.append({1: Block(9, b"x", 5)})
    log.mark_committed(LogPosition(first, 4))
    assert first_position(redis_client, "ny", log) == LogPosition(first, 4)
    finish(redis_client, 2, second)
    assert first_position(redis_client, "ny", log) == LogPosition(second, 7)
    redis_client.flushdb()
    finish(redis_client, 3, second)
    assert first_position(redis_client, "ny", log) == LogPosition(START, 0)
