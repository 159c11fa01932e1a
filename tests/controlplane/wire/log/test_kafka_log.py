"""The log in Kafka: what is kept of everything before a cut, and what Kafka may do to a topic."""

import json
from typing import Any, Final

import pytest
import redis
from confluent_kafka import Producer as Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.wire import keys
from controlplane.wire.errors import AppendTooLarge, LogFull, LogGap, LogUnavailable
from controlplane.wire.foreign.entries import skipped_entries
from controlplane.wire.log import open_log
from controlplane.wire.log.kafka_message import Append, MessageBlock
from controlplane.wire.log.kafka_prefix import Prefix
from controlplane.wire.log.values import (
    START,
    WINDOW,
    BacklogLimits,
    Block,
    IdempotencyToken,
    LogBacklog,
    LogPosition,
)
from tests.controlplane.wire.log.conftest import Place
from tests.support.redis_server import free_port

BEGIN = LogPosition(START, 0)
ALL = 10**9


def one(records: int = 1, data: bytes = b"a", newest_ms: int = 0) -> Block:
    return Block(records, data, newest_ms)


def topic_of(place: Place) -> str:
    return place.url.rpartition("/")[2]


def test_a_driver_killed_between_cut_and_read_sees_the_same_marks(kafka_place: Place) -> None:
    """The cut was handed out and the driver is gone: who reads it finds what it begins with.

    Meanwhile more was appended, and the next driver cuts elsewhere.
    """
    writer, driver = kafka_place.open(), kafka_place.open()
    for newest in (50, 10, 70):
        writer.append({1: one(newest_ms=newest)}, IdempotencyToken("p", newest))
    first = driver.position_after(BEGIN, 2)
    second = driver.position_after(first, 1)
    seen = kafka_place.open().read_streams([1], first.position, second.position)
    writer.append({1: one(newest_ms=70)}, IdempotencyToken("p", 70))
    writer.append({1: one(newest_ms=60)}, IdempotencyToken("p", 60))
    restarted = kafka_place.open()
    other = restarted.position_after(first, 100)
    assert kafka_place.open().read_streams([1], first.position, second.position) == seen
    assert [e.mark_ms for e in seen[1]] == [50]
    replayed = kafka_place.open().read_streams([1], first.position, other.position)[1]
    assert [(e.newest_ms, e.mark_ms) for e in replayed] == [(70, 50), (60, 70)]


def test_prefixes_are_kept_until_they_are_behind_the_checkpoint(
    kafka_place: Place, redis_client: "redis.Redis"
) -> None:
    """And no longer: they are as large as the number of streams."""
    log = kafka_place.open()
    for n in range(5):
        log.append({1: one(newest_ms=n)})
    cuts = [BEGIN]
    while (cut := log.position_after(cuts[-1], 1)) != cuts[-1]:
        cuts.append(cut)
    key = keys.kafka_prefixes_key("c", topic_of(kafka_place))
    assert redis_client.hlen(key) == 6
    log.mark_committed(cuts[3])
    kept: Any = redis_client.hkeys(key)
    assert {name.decode() for name in kept} == {cut.position for cut in cuts[3:]}


def test_an_emptied_redis_begins_marks_anew_for_all_readers(
    kafka_place: Place, redis_client: "redis.Redis"
) -> None:
    """The committed cut is known from Kafka; both halves of a batch agree on the rest."""
    log = kafka_place.open()
    log.append({1: one(3, newest_ms=90), 2: one(newest_ms=90)})
    cut = log.position_after(BEGIN, ALL)
    log.mark_committed(cut)
    redis_client.flushdb()
    log.append({1: one(newest_ms=10), 2: one(newest_ms=10)})
    again = kafka_place.open()
    assert again.committed_position() == cut == LogPosition("1-0", 4)
    end = again.position_after(cut, ALL)
    assert end == LogPosition("2-0", 6)
    read = kafka_place.open().read_streams([1, 2], cut.position, end.position)
    assert [read[s][0].mark_ms for s in (1, 2)] == [None, None]


def test_what_others_append_is_counted_too(kafka_place: Place) -> None:
    """By messages, each as large as the newest."""
    for _ in range(3):
        kafka_place.open().append({1: one(10, b"x" * 100)})
    log = kafka_place.open()
    assert log.waiting() == LogBacklog(30, 300)
    with pytest.raises(LogFull, match=r"30 records.*limit 30"):
        log.append({1: one()}, limits=BacklogLimits(records=30))
    log.append({1: one(5, b"y")}, limits=BacklogLimits(records=31))
    assert log.waiting().records == 35


def test_unread_messages_that_kafka_deleted_are_told(kafka_place: Place) -> None:
    """Records would be missing without a word. Whoever accepts that says so in the URL."""
    log = kafka_place.open()
    log.append({1: one()})
    cut = log.position_after(BEGIN, ALL)
    for n in range(8):  # the test's Kafka keeps 5 MB
        log.append({1: one(1, b"%d" % n * 900_000)})
    with pytest.raises(LogGap, match=r"deleted \d appends.*lost=skip"):
        log.position_after(cut, ALL)
    skipping = open_log(f"{kafka_place.url}?lost=skip", "c", kafka_place.site)
    end = skipping.position_after(cut, ALL)
    (entries,) = skipping.read_streams([1], cut.position, end.position).values()
    assert [entry.block[:1] for entry in entries][-1] == b"7"
    assert end.total - cut.total == len(entries) < 8
    skipping.close()


def test_a_topic_made_anew_is_told(kafka_place: Place) -> None:
    """Its positions begin again: nothing would be read until they have caught up."""
    log = kafka_place.open()
    log.append({1: one()})
    with pytest.raises(LogGap, match=r"ends at 1, and was read up to 9"):
        log.position_after(LogPosition("9-0", 9), ALL)


def test_a_topic_that_is_not_there_yet_is_an_empty_log(kafka_place: Place) -> None:
    """A driver may start before the first producer."""
    log = kafka_place.open()
    assert log.committed_position() == log.position_after(BEGIN, ALL) == BEGIN
    assert log.waiting() == LogBacklog(0, 0)


def test_a_message_too_large_for_kafka_is_told(kafka_place: Place) -> None:
    """Kafka's own limit is a megabyte; to append again would not help."""
    log = kafka_place.open()
    with pytest.raises(AppendTooLarge, match="append less at once"):
        log.append({1: one(data=b"x" * 1_100_000)})


_ODD: Final = st.one_of(
    st.binary(max_size=50),
    st.sampled_from([
        b'{"blocks":[[1,1,1,1]]}', b'{"blocks":[[1,-5,1,3]]}', b'{"blocks":[[1,1,1e400,3]]}',
        b'{"blocks":[[1,1,1,3]],"producer":"","sequence":1}', b"[" * 100_000, b'{"blocks":NaN}',
        b'{"blocks":[["9223372036854775808",1,1,3]]}', b'{"blocks":[[1,1,1,3]],"producer":[]}',
        b'{"blocks":[[1,1,' + b"9" * 5000 + b',3]]}',
    ]),
)  # fmt: skip


@given(head=_ODD)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_append_after_a_message_of_somebody_else_is_read(
    kafka_place: Place, kafka: str, head: bytes
) -> None:
    """Whatever its bytes are, it counts, has no records, and stops nothing."""
    log = kafka_place.open()
    start = log.position_after(LogPosition(START, 0), ALL)
    client = Client({"bootstrap.servers": kafka})
    client.produce(topic_of(kafka_place), value=b"hello", partition=0, headers={"weir": head})
    client.flush(60)
    log.append({1: one()})
    end = log.position_after(start, ALL)
    (entry,) = log.read_streams([1], start.position, end.position)[1]
    assert (entry.records, end.total - start.total) == (1, 1)
    log.close()


def test_messages_of_somebody_else_are_counted(
    kafka_place: Place, kafka: str, redis_client: "redis.Redis"
) -> None:
    client = Client({"bootstrap.servers": kafka})
    for _ in range(2):
        client.produce(topic_of(kafka_place), value=b"hello", partition=0)
    client.flush(60)
    log = kafka_place.open()
    assert log.position_after(BEGIN, ALL).total == 0
    (skipped,) = skipped_entries(redis_client, "c")
    assert (skipped.place, skipped.count) == ("log", 2)
    assert "it has no header 'weir'" in skipped.reason


def test_reading_needs_the_sites_redis(kafka_place: Place) -> None:
    """Appending does not."""
    log = open_log(kafka_place.url, "c")
    log.append({1: one()})
    with pytest.raises(LogUnavailable, match="site's Redis"):
        log.position_after(BEGIN, ALL)
    log.close()


def test_a_kafka_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the time that commands are given."""
    monkeypatch.setattr("controlplane.wire.log.kafka_reader.TIMEOUT_S", 0.3)
    log = open_log(f"kafka://127.0.0.1:{free_port()}", "c")
    with pytest.raises(LogUnavailable, match="cannot be reached"):
        log.append({1: one()})
    log.close()


def append(offset: int, sequence: int, newest_ms: int = 0) -> Append:
    return Append(
        offset, 0, (MessageBlock(1, 1, newest_ms, 1),), b"a", IdempotencyToken("p", sequence)
    )


def test_a_prefix_that_was_kept_goes_on_as_if_it_had_not_been() -> None:
    """Wherever the log is cut, the same appends are repetitions."""
    sequences = [1, 2, 2, 5, 4, 3, 3, 70, 6, 7, 7, 71 + WINDOW, 71, 72, 72, 2**53 - 1, 5]
    whole, cut = Prefix(), Prefix()
    for offset, sequence in enumerate(sequences):
        told = whole.take(append(offset, sequence, offset * 7 % 5))
        cut = Prefix.decode(cut.encode().encode())
        assert cut.take(append(offset, sequence, offset * 7 % 5)) == told
    assert cut == whole
    # 6 and 71 have left the window of 64 when they come, and so has the last 5.
    assert whole.total == 10


def test_only_the_producers_that_appended_last_are_remembered() -> None:
    """A prefix is written at every cut, so it must stay small."""
    prefix = Prefix()
    for n in range(1500):
        prefix.take(Append(n, 0, (MessageBlock(1, 1, 0, 1),), b"a", IdempotencyToken(f"p{n}", 0)))
    prefix.take(Append(1500, 0, (MessageBlock(1, 1, 0, 1),), b"a", IdempotencyToken("p700", 1)))
    names = [row[0] for row in json.loads(prefix.encode())[3]]
    assert names == [*(f"p{n}" for n in range(500, 1500) if n != 700), "p700"]
