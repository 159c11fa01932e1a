"""The log: one position over all streams, bounded cuts, memory given back."""

import pytest
import redis

from controlplane.wire import keys, log
from controlplane.wire.errors import LogFull
from controlplane.wire.log import START, Block, Cut


def positions(redis_client: "redis.Redis", stream: int) -> list[str]:
    read = log.read_streams(redis_client, "c", [stream], START, "+")
    return [entry.position for entry in read.get(stream, [])]


def test_one_append_stands_at_one_position_in_every_stream(redis_client: "redis.Redis") -> None:
    """So that one position cuts all streams at the same moment."""
    first = log.append(redis_client, "c", {1: Block(2, b"a", 0), 2: Block(3, b"b", 0)})
    second = log.append(redis_client, "c", {2: Block(1, b"c", 0)})
    assert positions(redis_client, 1) == [first]
    assert positions(redis_client, 2) == [first, second]
    assert log.last_cut(redis_client, "c") == Cut(second, 6)


def test_positions_grow_within_one_millisecond_and_when_the_clock_steps_back(
    redis_client: "redis.Redis",
) -> None:
    """A position in the future stands for a clock that was ahead."""
    ahead = "9999999999999-3"
    redis_client.xadd(keys.index_key("c"), {"n": 1, "total": 1}, id=ahead)
    assert log.append(redis_client, "c", {1: Block(1, b"a", 0)}) == "9999999999999-4"
    assert log.append(redis_client, "c", {1: Block(1, b"a", 0)}) == "9999999999999-5"
    assert log.last_cut(redis_client, "c") == Cut("9999999999999-5", 3)


def test_cut_is_bounded_and_always_moves_on(redis_client: "redis.Redis") -> None:
    """At most so many records, but at least one append, or a large one would block for ever."""
    ends = [log.append(redis_client, "c", {1: Block(n, b"a", 0)}) for n in (10, 10, 50, 10)]
    start = Cut(START, 0)
    first = log.cut_after(redis_client, "c", start, 25)
    assert first == Cut(ends[1], 20)
    assert log.cut_after(redis_client, "c", first, 25) == Cut(ends[2], 70)
    assert log.cut_after(redis_client, "c", first, 1000) == Cut(ends[3], 80)
    last = Cut(ends[3], 80)
    assert log.cut_after(redis_client, "c", last, 25) == last


def test_full_log_refuses_and_takes_again_once_read(redis_client: "redis.Redis") -> None:
    """Back-pressure with the numbers in it; nothing of a refused append is stored."""
    end = log.append(redis_client, "c", {1: Block(5, b"a", 0)}, limit=5)
    with pytest.raises(LogFull) as refusal:
        log.append(redis_client, "c", {1: Block(1, b"a", 0), 2: Block(1, b"b", 0)}, limit=5)
    assert (refusal.value.waiting, refusal.value.limit) == (5, 5)
    assert positions(redis_client, 2) == []
    log.mark_committed(redis_client, "c", Cut(end, 5), [1])
    log.append(redis_client, "c", {2: Block(1, b"b", 0)}, limit=5)
    assert len(positions(redis_client, 2)) == 1


def test_committed_records_give_their_memory_back(redis_client: "redis.Redis") -> None:
    """Only what a replay may still ask for stays; the total goes on."""
    ends = [log.append(redis_client, "c", {1: Block(1, b"a", 0)}) for _ in range(5)]
    log.mark_committed(redis_client, "c", Cut(ends[3], 4), [1])
    assert positions(redis_client, 1) == ends[3:]
    assert log.committed_cut(redis_client, "c") == Cut(ends[3], 4)
    log.append(redis_client, "c", {1: Block(1, b"a", 0)})
    cut = log.last_cut(redis_client, "c")
    assert cut is not None
    assert cut.total == 6
