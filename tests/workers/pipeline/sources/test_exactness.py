"""A topic read in place: every window equals DuckDB's over the messages, however batches cut it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import duckdb
import numpy as np
import pandas as pd
import pytest
import redis

from controlplane.wire.aggregates.finalize import WindowRow
from controlplane.wire.dead_letters import Reason, newest, read_counts
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema, SetSource
from controlplane.wire.routing.query_actions import AddQuery, MoveTasks
from controlplane.wire.schema import ColumnSpec, StreamSchema
from controlplane.wire.topics.source import TopicSource
from tests.support.pipeline import Pipeline
from tests.support.topics import TopicProducer, create_topic, running_broker, wait_until
from tests.support.whole_results import read_windows
from workers.pipeline.sources.topic import plan
from workers.pipeline.sources.topics import planner_of

SALES = StreamSchema(
    (
        ColumnSpec("at", "timestamp(ms)", nullable=False),
        ColumnSpec("country", "string"),
        ColumnSpec("amount", "decimal(12, 2)"),
        ColumnSpec("items", "int32"),
        ColumnSpec("part", "int32"),
    ),
    event_time="at",
    watermark_delay_s=120,
)
REVENUE = QueryText(
    {"n": "count(*)", "revenue": "sum(amount)", "most": "max(items)"},
    key=["country"],
    window_s=3600,
)
STREAM, OWN, QUERY, PARTITIONS = 7, 8, 5, 4
START_MS = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp() * 1000)
HOUR_MS = 3_600_000
COUNTRIES = ["DE", "Österreich", "ES", None, "DK", "a'b\"c"]


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with running_broker() as address:
        yield address


class Sales:
    """A pipeline that reads a topic of sales, and its producer, which knows what it has sent."""

    def __init__(self, pipeline: Pipeline, address: str, topic: str, seed: int) -> None:
        create_topic(address, topic, PARTITIONS)
        self.pipeline, self.rng = pipeline, np.random.default_rng(seed)
        self.producer = TopicProducer(address, topic)
        self.source = TopicSource(address, topic, metadata={"part": "partition"})
        self.sent: list[dict[str, object]] = []
        self.bad = 0
        # Partitions are hours apart: their clocks, in event time.
        self.clocks = [START_MS + n * HOUR_MS for n in range(PARTITIONS)]
        planner_of.cache_clear()

    def publish(self, splits: int) -> None:
        """Let two split nodes share the partitions, beside a stream of Weir's own log."""
        self.pipeline.publish(
            *(AssignStream(STREAM + n, n % splits) for n in range(2)),
            SetSchema(STREAM, SALES), SetSchema(OWN, SALES), SetSource(STREAM, self.source),
            AddQuery(QUERY, 0, 0, (STREAM,), json.dumps(REVENUE.to_json())),
        )  # fmt: skip

    def send(self, count: int) -> None:
        """Send messages in an order that is 100 s out of order in a partition, some unreadable."""
        for partition in self.rng.integers(0, PARTITIONS, count).tolist():
            self.clocks[partition] += int(self.rng.integers(0, 400_000))
            at = self.clocks[partition] - int(self.rng.integers(0, 100_000))
            if self.rng.random() < 0.05:
                self.bad += 1
                self.producer.send(partition, b'{"at": "yesterday"}' if at % 2 else b"\xff")
                continue
            row = {
                "at": at, "country": COUNTRIES[int(self.rng.integers(len(COUNTRIES)))],
                "amount": str(int(self.rng.integers(-500, 99_999)) / 100),
                "items": int(self.rng.integers(0, 50)), "unknown": {"x": [1]},
            }  # fmt: skip
            self.sent.append(row)
            self.producer.send(partition, row)
        self.producer.flush()

    def finish(self) -> None:
        """Process batches until all messages are read and no batch follows."""
        total = len(self.sent) + self.bad

        def is_done() -> bool:
            row = self.pipeline.batch(repeat=2)
            cut = self.pipeline.offset["topics"].get(str(STREAM), {"partitions": {}})
            return not row and sum(p[0] for p in cut["partitions"].values()) == total

        wait_until(is_done, "every message is read", 300)

    def windows(self) -> dict[tuple[int, str | None], tuple[object, ...]]:
        """Return what Weir has."""
        rows = windows_of(self.pipeline)
        return {
            (row.start_ms, row.key["country"]): tuple(
                row.values[n] for n in ("n", "revenue", "most")
            )
            for row in rows
        }

    def expected(self) -> dict[tuple[int, str | None], tuple[object, ...]]:
        """Return what DuckDB computes from the messages."""
        sales = pd.DataFrame(self.sent)
        rows = duckdb.sql(
            'SELECT "at" // 3600000 * 3600000 AS begin_ms, country, count(*),'
            " sum(CAST(amount AS DECIMAL(12, 2))), max(items) FROM sales GROUP BY ALL"
        ).fetchall()
        assert len(sales) == len(self.sent)
        return {(row[0], row[1]): row[2:] for row in rows}


def windows_of(pipeline: Pipeline) -> list[WindowRow]:
    computation = computation_of(REVENUE, SALES.kinds)
    return read_windows(pipeline.client, pipeline.cluster, QUERY, computation)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_window_equals_that_of_duckdb(
    seed: int, broker: str, redis_client: "redis.Redis", redis_server: str
) -> None:
    """Batches of random sizes, repeated and after restarts; partitions are hours apart."""
    pipeline = Pipeline(redis_client, redis_server, splits=2, max_records=90)
    sales = Sales(pipeline, broker, f"sales-{seed}", seed)
    sales.send(40)
    sales.publish(2)
    for step in range(8):
        for _ in range(int(sales.rng.integers(1, 4))):
            pipeline.batch(repeat=int(sales.rng.integers(1, 3)))
        sales.send(int(sales.rng.integers(1, 60)))
        if step % 3 == 1:
            planner_of.cache_clear()
            pipeline.restart()
        if step == 4:
            pipeline.publish(MoveTasks(QUERY, ((0, 0, 1),)))
    sales.finish()
    assert sales.windows() == sales.expected()
    counts = read_counts(redis_client, "c")[STREAM]
    assert counts == {Reason.MESSAGE: sales.bad}
    assert {letter.data for letter in newest(redis_client, "c")} <= {
        b'{"at": "yesterday"}',
        b"\xff",
    }


def test_records_of_one_partition_are_late_by_the_slowest_partition_only(
    broker: str, redis_client: "redis.Redis", redis_server: str
) -> None:
    """The watermark is the least of all partitions; a record behind it is late, at every node."""
    pipeline = Pipeline(redis_client, redis_server, splits=2)
    sales = Sales(pipeline, broker, "late", 3)
    sales.publish(2)
    row = {"country": "DE", "amount": "1.00", "items": 1}
    for partition in range(PARTITIONS):
        for _ in range(3):
            sales.producer.send(partition, row | {"at": START_MS + (5 + partition) * HOUR_MS})
    sales.producer.flush()
    sales.bad = 3 * PARTITIONS
    sales.finish()
    sales.producer.send(3, row | {"at": START_MS + 5 * HOUR_MS - 119_000})
    sales.producer.send(3, row | {"at": START_MS + 4 * HOUR_MS})
    sales.producer.flush()
    sales.bad += 2
    sales.finish()
    counts = {(w.start_ms - START_MS) // HOUR_MS: w.values["n"] for w in windows_of(pipeline)}
    assert counts == {4: 1, 5: 3, 6: 3, 7: 3, 8: 3}


def test_a_partition_that_is_added_is_read_from_its_start(
    broker: str, redis_client: "redis.Redis", redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then nobody lists it."""
    pipeline = Pipeline(redis_client, redis_server, splits=2)
    sales = Sales(pipeline, broker, "grown", 4)
    sales.publish(2)
    latest = "workers.pipeline.sources.topic.latest.partitions_of"
    with monkeypatch.context() as hidden:
        hidden.setattr(latest, lambda *_: [0, 1])
        sales.send(50)
        wait_until(lambda: not pipeline.batch() and len(_cut(pipeline)) == 2, "two partitions", 120)
    sales.finish()
    assert sales.windows() == sales.expected()


def test_records_of_the_log_that_are_appended_again_join_those_of_the_topic(
    broker: str, redis_client: "redis.Redis", redis_server: str
) -> None:
    """A dead letter is replayed into the log of the cluster."""
    pipeline = Pipeline(redis_client, redis_server, splits=2)
    sales = Sales(pipeline, broker, "again", 5)
    sales.publish(2)
    sales.send(30)
    sales.finish()
    last = {"at": sales.clocks[0], "country": "DE", "amount": "2.00", "items": 1, "part": 0}
    with Producer(redis_server, "c", schemas={STREAM: SALES}) as producer:
        producer.append({STREAM: [last]})
    pipeline.batch()
    sales.sent.append(last)
    assert sales.windows() == sales.expected()


def test_no_batch_takes_more_than_its_limit(
    broker: str, redis_client: "redis.Redis", redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size of messages is unknown before the first ones are read."""
    monkeypatch.setattr(plan, "FIRST_MESSAGES", 10)
    pipeline = Pipeline(redis_client, redis_server, max_records=25)
    sales = Sales(pipeline, broker, "bounded", 6)
    sales.send(100)
    sales.publish(1)
    read = []

    def is_done() -> bool:
        row = pipeline.batch()
        read.append(row.get("in", 0))
        return sum(read) == len(sales.sent)

    wait_until(is_done, "all is read", 120)
    filled = [count for count in read if count]
    assert filled[0] <= 10
    assert max(filled) <= 25


def _cut(pipeline: Pipeline) -> dict[str, object]:
    found: dict[str, object] = pipeline.offset["topics"].get(str(STREAM), {}).get("partitions", {})
    return found
