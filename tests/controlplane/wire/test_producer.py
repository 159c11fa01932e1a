"""The producers' door refuses what the pipeline could not read."""

import pyarrow as pa
import pytest
import redis

from controlplane.wire import log
from controlplane.wire.blocks import SCHEMA, decode_block
from controlplane.wire.errors import BadBlock
from controlplane.wire.producer import Producer


def reports(*cars: int) -> pa.RecordBatch:
    rows = [{"ts": 1000, "car": car, "x": 1, "y": 2, "speed": None} for car in cars]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def test_appended_records_are_read_back(redis_client: "redis.Redis", redis_server: str) -> None:
    """One block per stream, at the returned position."""
    with Producer(redis_server, "c") as producer:
        position = producer.append({1: reports(7, 8), 2: reports(9)})
    read = log.read_streams(redis_client, "c", [1, 2, 3], log.START, "+")
    assert [(s, e.position, e.records) for s in read for e in read[s]] == [
        (1, position, 2),
        (2, position, 1),
    ]
    assert decode_block(read[1][0].block).equals(reports(7, 8))


def test_wrong_schema_stores_nothing_of_the_whole_append(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """The error names the stream and both schemas."""
    wrong = pa.RecordBatch.from_pylist([{"ts": 1}])
    with (
        Producer(redis_server, "c") as producer,
        pytest.raises(BadBlock, match="stream 2: "),
    ):
        producer.append({1: reports(7), 2: wrong})
    assert log.last_cut(redis_client, "c") is None


def test_empty_block_and_null_key_are_refused(redis_server: str) -> None:
    """A block without records, or a record without a time, says nothing."""
    with Producer(redis_server, "c") as producer:
        with pytest.raises(BadBlock, match="1 to"):
            producer.append({1: reports()})
        nulls = pa.RecordBatch.from_arrays(
            [pa.nulls(1, field.type) for field in SCHEMA], schema=SCHEMA
        )
        with pytest.raises(BadBlock, match="'ts' must not hold nulls"):
            producer.append({1: nulls})
        assert producer.append({}) is None
