"""A driver that is killed with -9 while it reads a topic, files or a generator."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from controlplane.wire.network.destinations import LIST
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import (
    AssignPartition,
    AssignStream,
    SetSchema,
    SetSource,
)
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta
from tests.support.driver import Driver, Telemetry
from tests.support.topics import running_broker
from tests.workers.pipeline.sources.feeds import (
    Feed,
    FilesFeed,
    GeneratorFeed,
    PatternFeed,
    TopicFeed,
    windows_in,
)
from tests.workers.pipeline.sources.sales import QUERY, STREAM


@pytest.fixture
def feed(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Feed]:
    """A source by its name."""
    if request.param == "topic":
        with running_broker() as address:
            yield TopicFeed(address, 9, partitions=8)
    elif request.param == "pattern":
        with running_broker() as address:
            yield PatternFeed(address, 9)
    elif request.param == "generator":
        yield GeneratorFeed(9)
    else:
        monkeypatch.setenv(LIST, f"{os.environ[LIST]} file://{tmp_path}")
        yield FilesFeed(tmp_path, request.param, 9)


@pytest.mark.spark
@pytest.mark.nightly("spark")
@pytest.mark.parametrize("feed", ["topic", "pattern", "generator", "csv", "parquet"], indirect=True)
def test_a_killed_driver_counts_every_record_once(
    feed: Feed, redis_client: "redis.Redis", redis_server: str, tmp_path: Path
) -> None:
    """Records that came while nobody read are there, too; workers read the partitions.

    Some are redirected, also to a split node that opens with them.

    A topic of a pattern is created while the driver is away.
    """
    source = feed.source
    assert source is not None
    actions: tuple[Action, ...] = (
        *(AssignStream(STREAM + n, n) for n in range(2)), SetSchema(STREAM, feed.schema),
        SetSchema(STREAM + 1, feed.schema), SetSource(STREAM, source),
        AddQuery(QUERY, 0, 1, (STREAM,), json.dumps(feed.query.to_json())),
    )  # fmt: skip
    publish(redis_client, "k", RoutingDelta(1, actions))
    # So few that a generator, whose events have all occurred, is read in many batches.
    driver = Driver(redis_server, tmp_path, "k", nodes=2, splits=2, max_records=60)
    feed.send(60)
    driver.start()
    try:
        _send_until(driver, feed, 2)
        publish(redis_client, "k", RoutingDelta(2, (
            AssignPartition(STREAM, 1, 0), AssignPartition(STREAM, 0, 2), AssignStream(STREAM, 1),
        )))  # fmt: skip
        _send_until(driver, feed, 2, version=2)
        driver.kill()
        feed.send(60)
        driver.start()
        total = feed.total() - feed.bad
        driver.wait_for(lambda rows: _records(rows) == total, f"{total} records")
    finally:
        driver.kill()
    assert windows_in(feed, redis_client, "k") == feed.expected()


def _send_until(driver: Driver, feed: Feed, batches: int, version: int = 1) -> None:
    def is_done(rows: Telemetry) -> bool:
        feed.send(5)
        return sum(1 for row in rows if row["in"] and row["version"] >= version) >= batches

    driver.wait_for(is_done, f"{batches} batches with records")


def _records(rows: Telemetry) -> int:
    return sum(row["in"] for row in rows)
