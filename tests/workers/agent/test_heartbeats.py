"""What the observer sees in a real Redis: the driver, its batches, and what is left to read."""

import json
import time
from collections.abc import Iterator

import pytest
import redis

from controlplane.wire import keys
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.log.values import Block
from workers.agent.heartbeats import Observer, Unknown


@pytest.fixture
def observer(redis_client: "redis.Redis") -> Iterator[Observer]:
    """An observer of an empty Redis."""
    observer = Observer(redis_client)
    yield observer
    observer.close()


def finish(client: "redis.Redis", batch: int, end: str, version: int = 1) -> None:
    """Write what a finished batch leaves."""
    row = {"batch": batch, "version": version, "end": end, "emitted_ms": 5, "waiting": 0}
    client.xadd(keys.telemetry_key("ny"), {"t": json.dumps(row)}, id=f"{batch}-0")


def test_an_empty_redis_shows_nothing_to_do(observer: Observer) -> None:
    seen = observer.look("ny")
    assert (seen.beat, seen.batch, seen.unread, seen.has_work) == (None, -1, 0, False)


def test_the_backlog_begins_behind_the_newest_finished_batch(
    observer: Observer, redis_client: "redis.Redis"
) -> None:
    """What Spark has marked as committed lags by a batch: an idle cluster would look behind."""
    log = RedisLog(redis_client, "ny")
    first = log.append({1: Block(10, b"x", 5)})
    assert observer.look("ny").unread == 10
    second = log.append({1: Block(7, b"x", 5), 2: Block(1, b"x", 5)})
    assert observer.look("ny").unread == 18
    finish(redis_client, 1, first)
    seen = observer.look("ny")
    assert (seen.batch, seen.unread, seen.total) == (1, 8, 10)
    finish(redis_client, 2, second)
    seen = observer.look("ny")
    assert (seen.unread, seen.total, seen.has_work) == (0, 18, False)


def test_the_backlog_after_a_trim_and_after_a_loss(
    observer: Observer, redis_client: "redis.Redis"
) -> None:
    """The index goes with what is committed, and with everything when Redis is emptied."""
    log = RedisLog(redis_client, "ny")
    first = log.append({1: Block(10, b"x", 5)})
    log.append({1: Block(5, b"x", 5)})
    finish(redis_client, 1, first)
    log.mark_committed(log.position_after(log.committed_position(), 10))
    assert observer.look("ny").unread == 5
    redis_client.flushdb()
    assert observer.look("ny").unread == 0
    # Positions are times in milliseconds: an entry of the same one would look like the first.
    time.sleep(0.002)
    log.append({1: Block(3, b"x", 5)})
    finish(redis_client, 2, first)
    assert observer.look("ny").unread == 3


def test_a_redis_without_memory_is_told_apart(
    observer: Observer, redis_client: "redis.Redis"
) -> None:
    """Its driver cannot beat either: that is no reason to kill it."""
    redis_client.config_set("maxmemory", "1")
    try:
        seen = observer.look("ny")
    finally:
        redis_client.config_set("maxmemory", "0")
    assert seen.problem == "redis-memory"
    assert observer.look("ny").problem == ""


def test_a_redis_that_is_away_is_unknown() -> None:
    client = redis.Redis.from_url("redis://127.0.0.1:1/0")
    with pytest.raises(Unknown):
        Observer(client).look("ny")
