"""Every source: each window equals DuckDB's over the records, however batches cut them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from controlplane.wire import keys
from controlplane.wire.dead_letters import Reason, newest, read_counts
from controlplane.wire.network.destinations import LIST
from controlplane.wire.routing.cluster_actions import (
    AssignPartition,
    AssignStream,
    SetSchema,
    SetSource,
    SetSplitCapacity,
)
from controlplane.wire.routing.query_actions import AddQuery, MoveTasks
from tests.support.kafka import running_kafka
from tests.support.nightly import by_night
from tests.support.object_store import BUCKET, KEYS, ObjectStore, running_store
from tests.support.pipeline import Pipeline
from tests.support.topics import running_broker, wait_until
from tests.workers.pipeline.sources.feeds import (
    Feed,
    FilesFeed,
    GeneratorFeed,
    LogFeed,
    PatternFeed,
    StoreFeed,
    TopicFeed,
    windows_in,
)
from tests.workers.pipeline.sources.planners import forget_planners
from tests.workers.pipeline.sources.sales import OTHER, QUERY, STREAM
from workers.pipeline.sources.topic import latest

# Logs with the fixture that has their address.
LOGS = {"log": "redis_server", "kafka log": "kafka_log"}
SOURCES = (*LOGS, "topic", "pattern", "generator", "json", "csv", "parquet")
# Sources with the seed of their records.
FEEDS = [
    *((source, 1) for source in (*SOURCES, "s3")),
    *by_night("schedules", ((source, 2) for source in SOURCES)),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with running_broker() as address:
        yield address


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    with running_store() as running:
        monkeypatch.setenv(LIST, f"{os.environ[LIST]} s3://{BUCKET} {running.url}")
        monkeypatch.setenv("WEIR_TOPIC_SECRET_LAKE", ":".join(KEYS))
        yield running


@pytest.fixture
def kafka_log() -> Iterator[str]:
    with running_kafka() as address:
        yield f"kafka://{address}/weir-c"


def feed_of(name: str, seed: int, folder: Path, request: pytest.FixtureRequest) -> Feed:
    if name in LOGS:
        return LogFeed(request.getfixturevalue(LOGS[name]), seed)
    if name == "topic":
        return TopicFeed(request.getfixturevalue("broker"), seed)
    if name == "pattern":
        request.getfixturevalue("monkeypatch").setattr(latest, "_LISTED_S", 0.2)
        return PatternFeed(request.getfixturevalue("broker"), seed)
    if name == "generator":
        return GeneratorFeed(seed)
    if name == "s3":
        return StoreFeed(folder, request.getfixturevalue("store"), seed)
    request.getfixturevalue("monkeypatch").setenv(LIST, f"{os.environ[LIST]} file://{folder}")
    return FilesFeed(folder, name, seed)


@pytest.mark.parametrize(("name", "seed"), FEEDS)
def test_every_window_equals_that_of_duckdb(
    name: str,
    seed: int,
    redis_client: "redis.Redis",
    redis_server: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """Batches of random sizes, repeated and after restarts; partitions are hours apart.

    The query comes when records wait, and in a source of a stream after batches without a reader.
    Every step redirects the partitions of a source, and one the stream, whose split node carries
    the cut. In the log each step redirects the stream, and a low capacity delays it.
    """
    feed, rng = feed_of(name, seed, tmp_path, request), np.random.default_rng(seed)
    log_url = request.getfixturevalue("kafka_log") if name == "kafka log" else ""
    pipeline = Pipeline(redis_client, redis_server, splits=2, max_records=90, log_url=log_url)
    feed.send(40)
    pipeline.publish(
        *(AssignStream(stream, stream % 2) for stream in (STREAM, OTHER)),
        SetSchema(STREAM, feed.schema), SetSchema(OTHER, feed.schema),
        SetSplitCapacity(400, emulated=True),
    )  # fmt: skip
    if feed.source is not None:
        pipeline.publish(SetSource(STREAM, feed.source))
        wait_until(lambda: not pipeline.batch() and str(STREAM) in pipeline.offset["sources"],
                   "the source is placed", 120)  # fmt: skip
        pipeline.batch()
        told: Any = redis_client.hget(keys.sources_key("c"), str(STREAM))
        assert {row["unread"] for row in json.loads(told)["partitions"]} == {0}
    pipeline.publish(AddQuery(QUERY, 0, 0, (STREAM,), json.dumps(feed.query.to_json())))
    for step in range(8):
        for _ in range(int(rng.integers(1, 4))):
            pipeline.batch(repeat=int(rng.integers(1, 3)))
        pipeline.commit()
        feed.send(int(rng.integers(1, 60)))
        if step % 3 == 1:
            forget_planners()
            pipeline.restart()
        if step == 4:
            pipeline.publish(MoveTasks(QUERY, ((0, 0, 1),)), AssignStream(STREAM, 1))
        numbers = list(map(int, places_of(pipeline)))
        splits = rng.integers(0, 3, len(numbers) or 1).tolist()
        redirected = map(AssignPartition, [STREAM] * len(numbers), numbers, splits)
        pipeline.publish(*(redirected if numbers else [AssignStream(STREAM, splits[0])]))

    def is_done() -> bool:
        row, offset = pipeline.batch(repeat=2), pipeline.offset
        read = sum(place[0] for place in places_of(pipeline).values()) or offset["total"]
        return not row and not offset["delayed"] and read == feed.total()

    wait_until(is_done, "every record is read", 300)
    assert windows_in(feed, redis_client, "c") == feed.expected()
    counts = read_counts(redis_client, "c").get(STREAM, {})
    assert counts == ({Reason.MESSAGE: feed.bad} if feed.bad else {})
    assert len(newest(redis_client, "c")) == feed.bad


def places_of(pipeline: Pipeline) -> dict[str, Any]:
    """Return how far the partitions of the source are read; none for the log."""
    places: dict[str, Any] = pipeline.offset["sources"].get(str(STREAM), {}).get("partitions", {})
    return places
