"""A driver that is killed with -9 while it reads a topic of eight partitions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema, SetSource
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta
from tests.support.driver import Driver, Telemetry
from tests.support.topics import running_broker
from tests.workers.pipeline.sources.sales import (
    QUERY,
    REVENUE_TEXT,
    SALES,
    STREAM,
    Messages,
    windows_of,
)


@pytest.fixture
def broker() -> Iterator[str]:
    with running_broker() as address:
        yield address


@pytest.mark.spark
@pytest.mark.nightly("spark")
def test_a_killed_driver_counts_every_message_once(
    broker: str, redis_client: "redis.Redis", redis_server: str, tmp_path: Path
) -> None:
    """Messages that were sent while nobody read are there, too; workers read the partitions."""
    messages = Messages(broker, "sales", seed=9, partitions=8)
    actions: tuple[Action, ...] = (
        *(AssignStream(STREAM + n, n) for n in range(2)), SetSchema(STREAM, SALES),
        SetSchema(STREAM + 1, SALES), SetSource(STREAM, messages.source),
        AddQuery(QUERY, 0, 1, (STREAM,), REVENUE_TEXT),
    )  # fmt: skip
    publish(redis_client, "k", RoutingDelta(1, actions))
    driver = Driver(redis_server, tmp_path, "k", nodes=2, splits=2)
    messages.send(60)
    driver.start()
    try:
        _send_until(driver, messages, 2)
        driver.kill()
        messages.send(60)
        driver.start()
        total = len(messages.sent)
        driver.wait_for(lambda rows: _records(rows) == total, f"{total} records")
    finally:
        driver.kill()
    assert windows_of(redis_client, "k") == messages.expected()


def _send_until(driver: Driver, messages: Messages, batches: int) -> None:
    def is_done(rows: Telemetry) -> bool:
        messages.send(5)
        return sum(1 for row in rows if row["in"]) >= batches

    driver.wait_for(is_done, f"{batches} batches with records")


def _records(rows: Telemetry) -> int:
    return sum(row["in"] for row in rows)
