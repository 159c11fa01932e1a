"""A batch that is skipped reads no records; all else of its plan goes on."""

from typing import Any

import pytest
import redis

from controlplane.wire import attempts
from controlplane.wire.log import open_log
from controlplane.wire.log.values import START, Block
from controlplane.wire.routing.cluster_actions import AssignStream
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.table import RoutingDelta
from workers.pipeline.sink import write_telemetry
from workers.pipeline.spark.connections import tables_of
from workers.pipeline.split_nodes.offset import Offset
from workers.pipeline.split_nodes.partition import SplitPartition, parts_of
from workers.pipeline.split_nodes.source import LogReader


@pytest.fixture
def reader(redis_client: "redis.Redis", redis_server: str) -> LogReader:
    tables_of.cache_clear()
    publish(redis_client, "c", RoutingDelta(1, (AssignStream(1, 0),)))
    return LogReader("c", redis_server, 1, 1, 1, 1_000, 1 << 20, 1 << 30)


def test_a_skipped_batch_has_its_plan_and_no_records(
    reader: LogReader, redis_client: "redis.Redis", redis_server: str
) -> None:
    log = open_log("", "c", redis_server)
    end = log.append({1: Block(30, b"no Arrow at all", 5)})
    log.close()
    assert end
    begin = Offset(7, START, 0, 1).to_json()
    stop = Offset(8, end, 30, 1, export_version=1, clock_ms=99).to_json()
    (plain,) = partitions(reader, begin, stop)
    assert (plain.ranges.start.position, plain.ranges.end.position, plain.ranges.is_skipped) == (
        START,
        end,
        False,
    )
    known = attempts.newest(redis_client, "c")
    assert known == attempts.BatchAttempt(8, 1, START, end, 30, 1, leaving=1)
    attempts.skip(redis_client, "c", 8)
    (skipped,) = partitions(reader, begin, stop)
    read = skipped.ranges
    assert (read.start.position, read.end.position, read.is_skipped) == (end, end, True)
    assert skipped.header == plain.header
    rows = list(reader.read(skipped))
    assert sum(row.num_rows for row in rows) == 1, "each node has its turn"
    write_telemetry(redis_client, "c", {"batch": 8, "dead": {}})
    # The next batch has records again.
    (later,) = partitions(reader, stop, Offset(9, f"{end}9", 31, 1).to_json())
    assert not later.ranges.is_skipped


def partitions(reader: LogReader, begin: Any, stop: Any) -> list[SplitPartition]:
    return [part for read in reader.partitions(begin, stop) for part in parts_of(read)]
