"""Dead letters: kept up to a bound, once however often they are written, counted by batch."""

import pytest
import redis

from controlplane.wire import dead_letters
from controlplane.wire.dead_letters import DeadLetter, Reason


def letters(count: int, size: int = 10, stream: int = 1) -> list[DeadLetter]:
    return [
        DeadLetter(stream, "5-0", at, Reason.FUTURE, f"letter {at}", bytes([at % 251]) * size)
        for at in range(count)
    ]


def test_what_is_written_again_changes_nothing(redis_client: "redis.Redis") -> None:
    """They come back as they were, page by page, in the order in which they came."""
    for _ in range(2):
        dead_letters.keep(redis_client, "c", letters(5))
    dead_letters.keep(redis_client, "c", letters(2, stream=9))
    first = dead_letters.page(redis_client, "c", limit=3)
    assert [one.number for one in first] == [1, 2, 3]
    rest = dead_letters.page(redis_client, "c", after=3)
    assert [(one.stream, one.index) for one in rest] == [(1, 3), (1, 4), (9, 0), (9, 1)]
    assert rest[0].data == bytes([3]) * 10
    assert (rest[0].message, rest[0].reason, rest[0].position) == ("letter 3", "future", "5-0")
    assert list(dead_letters.every(redis_client, "c")) == [*first, *rest]
    assert list(dead_letters.every(redis_client, "other")) == []


def test_the_oldest_make_room(redis_client: "redis.Redis", monkeypatch: pytest.MonkeyPatch) -> None:
    """By count and by bytes; one that is too large is kept without its content."""
    monkeypatch.setattr(dead_letters, "MAX_COUNT", 4)
    dead_letters.keep(redis_client, "c", letters(6))
    assert [one.index for one in dead_letters.every(redis_client, "c")] == [2, 3, 4, 5]
    monkeypatch.setattr(dead_letters, "MAX_BYTES", 200)
    dead_letters.keep(redis_client, "c", letters(1, size=150, stream=2))
    assert [one.stream for one in dead_letters.every(redis_client, "c")] == [2]
    monkeypatch.setattr(dead_letters, "MAX_RECORD_BYTES", 100)
    dead_letters.keep(redis_client, "c", letters(1, size=150, stream=3))
    assert [one.data for one in dead_letters.every(redis_client, "c")][-1] == b""


def test_removed_ones_are_gone_and_give_their_room_back(redis_client: "redis.Redis") -> None:
    dead_letters.keep(redis_client, "c", letters(3))
    ids = [one.id for one in dead_letters.every(redis_client, "c")]
    assert dead_letters.remove(redis_client, "c", [ids[1], "9-9:9:9"]) == 1
    assert [one.id for one in dead_letters.every(redis_client, "c")] == [ids[0], ids[2]]
    assert dead_letters.remove(redis_client, "c", ids) == 2
    state = redis_client.hgetall("weir:{c}:dead:state")
    assert dict(state)[b"bytes"] == b"0"


def test_a_batch_counts_once(redis_client: "redis.Redis") -> None:
    """Its replay does not; the numbers are whole records by stream and reason."""
    for batch in (3, 3, 4, 2):
        dead_letters.count(redis_client, "c", batch, {"1": {"future": 2, "schema": 10}})
    assert dead_letters.read_counts(redis_client, "c") == {1: {Reason.FUTURE: 4, Reason.SCHEMA: 20}}
