"""The producers' door refuses what the pipeline could not read."""

from pathlib import Path

import pyarrow as pa
import pytest
import redis

from controlplane.wire.errors import (
    BadBlock,
    BadLogUrl,
    IdempotencyTokenReused,
    InvalidIdempotencyToken,
    LogFull,
    LogUnavailable,
)
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.log.values import START, IdempotencyToken
from controlplane.wire.producer import Producer
from controlplane.wire.records.record_codec import decode_block
from controlplane.wire.redaction import without_password
from tests.support.redis_server import RedisServer
from tests.support.schemas import ALL_REPORTS, REPORTS


def reports(*cars: int) -> pa.RecordBatch:
    rows = [{"ts": 1000, "car": car, "x": 1, "y": 2, "speed": None} for car in cars]
    return pa.RecordBatch.from_pylist(rows, REPORTS.arrow)


def test_appended_records_are_read_back(redis_client: "redis.Redis", redis_server: str) -> None:
    """One block per stream, at the returned position."""
    with Producer(redis_server, "c", schemas=ALL_REPORTS) as producer:
        position = producer.append({1: reports(7, 8), 2: reports(9)})
    read = RedisLog(redis_client, "c").read_streams([1, 2, 3], START, "+")
    assert [(s, e.position, e.records) for s in read for e in read[s]] == [
        (1, position, 2),
        (2, position, 1),
    ]
    assert decode_block(read[1][0].block).records.equals(reports(7, 8))


def test_wrong_schema_stores_nothing_of_the_whole_append(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """The error names the stream and both schemas."""
    wrong = pa.RecordBatch.from_pylist([{"ts": 1}])
    with (
        Producer(redis_server, "c", schemas=ALL_REPORTS) as producer,
        pytest.raises(BadBlock, match="stream 2: "),
    ):
        producer.append({1: reports(7), 2: wrong})
    assert redis_client.dbsize() == 0


def test_empty_block_and_null_key_are_refused(redis_server: str) -> None:
    """A block without records, or a record without a time, says nothing."""
    with Producer(redis_server, "c", schemas=ALL_REPORTS) as producer:
        with pytest.raises(BadBlock, match="1 to"):
            producer.append({1: reports()})
        nulls = pa.RecordBatch.from_arrays(
            [pa.nulls(1, field.type) for field in REPORTS.arrow], schema=REPORTS.arrow
        )
        with pytest.raises(BadBlock, match="column ts: must not hold nulls"):
            producer.append({1: nulls})
        assert producer.append({}) is None


def test_each_append_counts_and_a_repetition_does_not(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """Two equal appends are two; the same stamp twice is one."""
    with Producer(redis_server, "c", schemas=ALL_REPORTS) as producer:
        positions = {producer.append({1: reports(7)}) for _ in range(3)}
        token = IdempotencyToken("loader", 17)
        stamped = {producer.append({1: reports(7)}, token) for _ in range(3)}
    read = RedisLog(redis_client, "c").read_streams([1], START, "+")
    assert {entry.position for entry in read[1]} == positions | stamped
    assert (len(positions), len(stamped)) == (3, 1)


def test_a_stamp_that_other_records_had_is_refused(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """Not answered as if they were stored; those that had it are repeated as before."""
    token = IdempotencyToken("loader", 17)
    with Producer(redis_server, "c", schemas=ALL_REPORTS) as producer:
        first = producer.append({1: reports(7), 2: reports(8)}, token)
        for other in ({1: reports(9), 2: reports(8)}, {1: reports(7)}, {2: reports(7)}):
            with pytest.raises(IdempotencyTokenReused, match="sequence 17 of producer 'loader'"):
                producer.append(other, token)
        assert producer.append({2: reports(8), 1: reports(7)}, token) == first
        assert producer.waiting().records == 2


def test_an_append_whose_answer_was_lost_is_repeated_under_its_stamp(tmp_path: Path) -> None:
    """The error has the stamp; whether the first try came through does not matter."""
    with (
        RedisServer(tmp_path, fsync="always") as server,
        Producer(server.url, "c", schemas=ALL_REPORTS) as producer,
    ):
        producer.append({1: reports(6)})
        server.kill()
        with pytest.raises(LogUnavailable) as lost:
            producer.append({1: reports(7)})
        server.start()
        token = lost.value.token
        assert isinstance(token, IdempotencyToken)
        first = producer.append({1: reports(7)}, token)
        assert producer.append({1: reports(7)}, token) == first
        assert producer.waiting().records == 2


def test_a_producer_is_told_to_slow_down(redis_client: "redis.Redis", redis_server: str) -> None:
    """Its own limits count, of records and of bytes."""
    with Producer(redis_server, "c", limit=2, schemas=ALL_REPORTS) as producer:
        producer.append({1: reports(7, 8)})
        with pytest.raises(LogFull, match=r"2 records.*limit 2"):
            producer.append({1: reports(9)})
    size = RedisLog(redis_client, "c").waiting().bytes
    with (
        Producer(redis_server, "c", max_bytes=size + 1, schemas=ALL_REPORTS) as producer,
        pytest.raises(LogFull, match=f"{size:,} bytes"),
    ):
        producer.append({1: reports(9)})


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://x", "begins with redis://"),
        ("", "begins with redis://"),
        ("kafka://broker/topic", "'broker' is not host:port"),
        ("kafka://a:1,b:70000/topic", "'b:70000' is not host:port"),
        ("kafka://a:1/to/pic", "not a name of a Kafka topic"),
        ("kafka://a:1/t?plugin.library.paths=/tmp/x.so", "unknown option 'plugin.library.paths'"),
        ("kafka://a:1/t?lost=maybe", "lost=maybe must be"),
        ("kafka://a:1/t?security.protocol=none", "security.protocol"),
    ],
)
def test_a_wrong_url_is_refused_with_what_is_wrong(url: str, told: str) -> None:
    """Before anything is sent anywhere."""
    with pytest.raises(BadLogUrl, match=told):
        Producer(url, "c", schemas=ALL_REPORTS)


def test_a_password_is_not_shown() -> None:
    """Pages and logs show a log's URL without it."""
    assert without_password("kafka://me:se%2Fcret@a:1,b:2/t") == "kafka://me:***@a:1,b:2/t"
    assert without_password("redis://:secret@a:1/0") == "redis://:***@a:1/0"
    assert without_password("redis://a:1/0") == "redis://a:1/0"


@pytest.mark.parametrize(
    ("producer", "sequence"), [("", 1), ("p" * 101, 1), ("p", -1), ("p", 2**53)]
)
def test_a_stamp_that_cannot_be_told_apart_is_refused(producer: str, sequence: int) -> None:
    """Numbers above 2**53 would be taken for their neighbours."""
    with pytest.raises(InvalidIdempotencyToken):
        IdempotencyToken(producer, sequence)
