"""Split nodes with an emulated capacity: queues, redirects, replays and new checkpoints."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import redis

from controlplane.wire.log import open_log
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import AssignStream, SetSplitCapacity
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.pipeline import Pipeline
from tests.support.schemas import assigned
from tests.support.whole_results import read_windows
from workers.pipeline.split_nodes.offset import Offset
from workers.pipeline.split_nodes.partition import SplitPartition, parts_of

METER = StreamSchema(
    (ColumnSpec("read_at", "timestamp(ms)", nullable=False), ColumnSpec("n", "int64")),
    event_time="read_at",
)
START = datetime(2026, 5, 1, tzinfo=UTC)
SUM = QueryText({"records": "count(*)", "sum": "sum(n)"}, window_s=86_400)
SLOW, FAST = 1, 2


@pytest.fixture
def pipeline(redis_client: "redis.Redis", redis_server: str) -> Pipeline:
    """Two streams on two split nodes of 100 records/s, and a query of each with its number."""
    result = Pipeline(redis_client, redis_server, splits=2)
    text = json.dumps(SUM.to_json())
    queries = [AddQuery(stream, 0, 0, (stream,), text) for stream in (SLOW, FAST)]
    result.publish(
        *assigned([SLOW, FAST], 1, METER), AssignStream(FAST, 1), *queries,
        SetSplitCapacity(100, emulated=True),
    )  # fmt: skip
    return result


class Appender:
    """Appends records with rising numbers, ten in an entry."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.sums = {SLOW: 0, FAST: 0}
        self._next = 0

    def append(self, stream: int, records: int) -> None:
        """Append so many records to one stream."""
        for first in range(0, records, 10):
            numbers = range(self._next, self._next + min(10, records - first))
            self._next += len(numbers)
            self.sums[stream] += sum(numbers)
            rows = [{"read_at": START + timedelta(milliseconds=n), "n": n} for n in numbers]
            self._producer.append({stream: rows})


def pass_time(pipeline: Pipeline, ms: int) -> None:
    """Let the next batch be so much later than the last one."""
    pipeline.offset["clock_ms"] -= ms


def drain(pipeline: Pipeline, most: int = 50) -> int:
    """Process batches, a second apart, until nothing is unread; return how many."""
    for count in range(most):
        if count or pipeline.offset:
            pass_time(pipeline, 1_000)
        if not pipeline.batch():
            return count
    raise AssertionError("never done")


def totals(pipeline: Pipeline, stream: int) -> tuple[int, int]:
    """Return the records that the query of a stream has counted, and their sum."""
    computation = computation_of(SUM, METER.kinds)
    rows = read_windows(pipeline.client, pipeline.cluster, stream, computation)
    return sum(row.values["records"] for row in rows), sum(row.values["sum"] for row in rows)


def parts(pipeline: Pipeline, begin: dict[str, object]) -> Sequence[SplitPartition]:
    found = pipeline.reader.partitions(begin, pipeline.offset)
    return [part for read in found for part in parts_of(read)]


def test_an_overloaded_split_node_delays_its_streams_and_no_others(
    pipeline: Pipeline, redis_server: str
) -> None:
    """Its queue, latency and utilisation are reported; the other one's stream is at the end."""
    with Producer(redis_server, "c") as producer:
        appender = Appender(producer)
        appender.append(SLOW, 450)
        appender.append(FAST, 80)
        row = pipeline.batch()
        assert row["streams"] == {str(SLOW): 100, str(FAST): 80}
        assert set(row["delayed"]) == {str(SLOW)}
        assert row["read_position"] == row["delayed"][str(SLOW)]
        slow, fast = row["splits"]
        assert (slow["split_waiting"], fast["split_waiting"]) == (350, 0)
        assert slow["split_latency"] >= 3_500, "so long until they are read"
        assert fast["split_latency"] == 0
        pass_time(pipeline, 1_000)
        appender.append(FAST, 30)
        row = pipeline.batch(repeat=2)
        assert row["streams"][str(FAST)] == 30
        assert 100 <= row["streams"][str(SLOW)] <= 130
        assert row["splits"][0]["split_utilisation"] == pytest.approx(1, abs=0.3)
        drain(pipeline)
        assert totals(pipeline, SLOW) == (450, appender.sums[SLOW])
        assert totals(pipeline, FAST) == (110, appender.sums[FAST])
        pipeline.commit()
        assert open_log("", "c", redis_server).waiting().records == 0


def test_the_log_keeps_what_a_delayed_stream_still_needs(
    pipeline: Pipeline, redis_server: str
) -> None:
    with Producer(redis_server, "c") as producer:
        appender = Appender(producer)
        appender.append(SLOW, 300)
        appender.append(FAST, 40)
        pipeline.batch()
        pipeline.commit()
        log = open_log("", "c", redis_server)
        assert log.waiting().records == 240, "all behind the first unread record"
        drain(pipeline)
        assert totals(pipeline, SLOW) == (300, appender.sums[SLOW])


def test_a_redirect_takes_effect_in_the_next_batch_and_loses_nothing(
    pipeline: Pipeline, redis_server: str
) -> None:
    """The stream's unread records go with it; the new split node opens without a restart."""
    with Producer(redis_server, "c") as producer:
        appender = Appender(producer)
        appender.append(SLOW, 500)
        appender.append(FAST, 500)
        first = pipeline.batch()
        assert set(first["delayed"]) == {str(SLOW), str(FAST)}
        pipeline.publish(AssignStream(SLOW, 5))
        pass_time(pipeline, 1_000)
        before = pipeline.offset
        row = pipeline.batch(repeat=3)
        assert [part.header.split for part in parts(pipeline, before)] == [1, 5]
        assert [split["split"] for split in row["splits"]] == [1, 5]
        assert row["version"] == 2
        assert row["streams"][str(FAST)] >= 100, "undisturbed"
        appender.append(SLOW, 70)
        pipeline.publish(AssignStream(SLOW, 1))
        pass_time(pipeline, 1_000)
        assert [split["split"] for split in pipeline.batch()["splits"]] == [1], "5 is closed"
        drain(pipeline)
        assert totals(pipeline, SLOW) == (570, appender.sums[SLOW])
        assert totals(pipeline, FAST) == (500, appender.sums[FAST])


def test_a_new_checkpoint_goes_on_with_the_delays(pipeline: Pipeline, redis_server: str) -> None:
    """As when the checkpoint's directory was lost, with the state of the nodes."""
    with Producer(redis_server, "c") as producer:
        appender = Appender(producer)
        appender.append(SLOW, 300)
        appender.append(FAST, 40)
        pipeline.batch()
        pass_time(pipeline, 1_000)
        pipeline.batch()
        pipeline.commit()
        begin = Offset.from_json(pipeline.reader.initialOffset())
        old = Offset.from_json(pipeline.offset)
        assert (begin.position, begin.delayed) == (old.position, old.delayed)
        assert begin.delayed
        pipeline.offset = replace(begin, batch=old.batch, clock_ms=old.clock_ms).to_json()
        drain(pipeline)
        assert totals(pipeline, SLOW) == (300, appender.sums[SLOW])
        assert totals(pipeline, FAST) == (40, appender.sums[FAST])


def test_without_an_emulated_capacity_split_nodes_are_measured(
    pipeline: Pipeline, redis_server: str
) -> None:
    """Records per second of their own work: that is what they could read."""
    pipeline.publish(SetSplitCapacity(0, emulated=False))
    with Producer(redis_server, "c") as producer:
        Appender(producer).append(SLOW, 1_000)
        row = pipeline.batch()
        assert row["streams"] == {str(SLOW): 1_000}
        assert row["delayed"] == {}
        slow, fast = row["splits"]
        assert slow["capacity"] == pytest.approx(1_000 / slow["busy"], rel=0.05)
        assert fast["capacity"] is None
