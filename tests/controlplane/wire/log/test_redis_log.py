"""The log in Redis: its clock, its memory, and what it does when that runs out."""

from typing import Any

import pytest
import redis

from controlplane.wire import keys
from controlplane.wire.errors import (
    LogFull,
    LogUnavailable,
    RedisOutOfMemory,
    StaleIdempotencyToken,
)
from controlplane.wire.log import open_log
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.log.redis_scripts import KEPT_BLOCKS, KEPT_RECORDS
from controlplane.wire.log.values import START, WINDOW, Block, IdempotencyToken, LogPosition
from tests.support.redis_server import free_port

ONE = Block(1, b"a", 0)


@pytest.fixture
def log(redis_client: "redis.Redis") -> RedisLog:
    return RedisLog(redis_client, "c")


def positions(log: RedisLog, stream: int) -> list[str]:
    read = log.read_streams([stream], START, "+")
    return [entry.position for entry in read.get(stream, [])]


def test_positions_grow_within_one_millisecond_and_when_the_clock_steps_back(
    redis_client: "redis.Redis", log: RedisLog
) -> None:
    """A position in the future stands for a clock that was ahead."""
    ahead = "9999999999999-3"
    redis_client.xadd(keys.index_key("c"), {"n": 1, "total": 1}, id=ahead)
    assert log.append({1: ONE}) == "9999999999999-4"
    assert log.append({1: ONE}) == "9999999999999-5"
    assert log.position_after(LogPosition(START, 0), 100) == LogPosition("9999999999999-5", 3)


def test_committed_records_give_their_memory_back(log: RedisLog) -> None:
    """Only what a replay may still ask for stays, of every stream; the total goes on."""
    many = Block(KEPT_RECORDS, b"a", 0)
    ends = [log.append({1: many, 2: many}) for _ in range(5)]
    total = 8 * KEPT_RECORDS
    log.mark_committed(LogPosition(ends[3], total))
    assert positions(log, 1) == positions(log, 2) == ends[3:]
    assert log.committed_position() == LogPosition(ends[3], total)
    end = log.append({1: ONE})
    behind = log.position_after(LogPosition(ends[3], total), 10**9)
    assert behind == LogPosition(end, total + 2 * KEPT_RECORDS + 1)


def test_the_newest_blocks_of_a_stream_stay_after_their_commit(log: RedisLog) -> None:
    """Of a stream without new records too; not more blocks or records than previews read."""
    small = [log.append({1: ONE}) for _ in range(KEPT_BLOCKS + 3)]
    large = [log.append({2: Block(KEPT_RECORDS // 2, b"a", 0)}) for _ in range(4)]
    end = log.append({3: ONE})
    log.mark_committed(LogPosition(end, 10**6))
    assert positions(log, 1) == small[-KEPT_BLOCKS:]
    assert positions(log, 2) == large[-2:]
    assert positions(log, 3) == [end]
    newest = log.newest_entries([1, 2, 4], 2)
    assert {stream: [e.position for e in rows] for stream, rows in newest.items()} == {
        1: small[-2:],
        2: large[-2:],
    }
    assert log.behind([1, 2], end) == {}
    assert log.read_streams([1, 2], end, log.append({1: ONE})).keys() == {1}


def test_a_producer_is_remembered_within_bounds(redis_client: "redis.Redis", log: RedisLog) -> None:
    """Its last sequences and no more, for a day; behind a leap all before it is too old."""
    key = keys.producer_key("c", "p")
    for sequence in range(3 * WINDOW):
        log.append({1: ONE}, IdempotencyToken("p", sequence))
    assert redis_client.hlen(key) == WINDOW + 1
    ttl: Any = redis_client.ttl(key)
    assert 0 < ttl <= 24 * 3600
    position = log.append({1: ONE}, IdempotencyToken("p", 2**53 - 1))
    assert log.append({1: ONE}, IdempotencyToken("p", 2**53 - 1)) == position
    assert redis_client.hlen(key) == WINDOW + 1
    with pytest.raises(StaleIdempotencyToken):
        log.append({1: ONE}, IdempotencyToken("p", 3 * WINDOW - 1))


def test_a_sequence_too_old_to_know_is_refused(log: RedisLog) -> None:
    """To append it might double it, to acknowledge it might lose it."""
    log.append({1: ONE}, IdempotencyToken("p", WINDOW + 5))
    log.append({1: ONE}, IdempotencyToken("p", 6))
    with pytest.raises(StaleIdempotencyToken, match=f"sequence 5 .*behind {WINDOW + 5}"):
        log.append({1: ONE}, IdempotencyToken("p", 5))
    assert len(positions(log, 1)) == 2


def test_out_of_memory_is_told_and_nothing_is_half_appended(
    redis_client: "redis.Redis", log: RedisLog
) -> None:
    """Every part of the append is refused; what is committed is given back all the same."""
    block = Block(3, b"x" * 100, 0)
    end = log.append({1: block}, IdempotencyToken("p", 64))
    before: Any = redis_client.dbsize()
    redis_client.config_set("maxmemory", "1")
    try:
        with pytest.raises(RedisOutOfMemory, match=r"100 bytes.*give Redis more") as refusal:
            log.append({1: ONE, 2: ONE}, IdempotencyToken("p", 1000))
        assert isinstance(refusal.value, LogFull)
        log.mark_committed(LogPosition(end, 3))
    finally:
        redis_client.config_set("maxmemory", "0")
    assert redis_client.dbsize() == before + 1, "of new keys only that of the commit"
    assert positions(log, 1) == [end]
    assert log.committed_position() == LogPosition(end, 3)
    assert log.append({1: block}, IdempotencyToken("p", 64)) == end


def test_a_log_that_does_not_answer_is_told() -> None:
    """Whether it has taken the append, nobody knows: append again."""
    log = open_log(f"redis://127.0.0.1:{free_port()}/0", "c")
    with pytest.raises(LogUnavailable, match="cannot be reached"):
        log.append({1: ONE})
    with pytest.raises(LogUnavailable):
        log.waiting()


def test_what_is_behind_a_cut_is_known_by_stream(log: RedisLog) -> None:
    """Records and the time of the oldest; also after what is before was given back."""
    ends = [
        log.append({1: Block(3, b"a", 0), 2: Block(2, b"b", 0)}),
        log.append({1: Block(4, b"c", 0)}),
    ]
    assert {s: found.records for s, found in log.behind([1, 2, 3], START).items()} == {1: 7, 2: 2}
    for _ in range(2):
        (found,) = log.behind([1, 2, 3], ends[0]).items()
        assert found == (1, (4, int(ends[1].partition("-")[0])))
        log.mark_committed(LogPosition(ends[0], 5))
    assert log.behind([1, 2, 3], ends[1]) == {}
    assert log.behind([], START) == {}
