"""A spare that becomes the driver in place of a killed one goes on exactly where that one was."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import redis

from controlplane.child_processes import trees
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.controlplane.processes.runtime.waiting import wait_for
from tests.support.driver import SparedDriver
from tests.support.redis_server import running_redis
from tests.support.schemas import FAR_S, assigned
from tests.support.whole_results import read_windows
from workers.agent.driver import MARK

PUMPS = StreamSchema(
    (ColumnSpec("at", "timestamp(ms)", nullable=False), ColumnSpec("litres", "int64")),
    event_time="at",
    max_future_s=FAR_S,
)
COUNTS = QueryText({"v": "count(*)"}, window_s=60.0)


class Pumps:
    """A cluster with a query that counts, its driver, and its records."""

    def __init__(self, url: str, folder: Path) -> None:
        self.client = redis.Redis.from_url(url)
        query = AddQuery(5, 0, 1, (1,), json.dumps(COUNTS.to_json()))
        publish(self.client, "pumps", RoutingDelta(1, (*assigned([1], 1, PUMPS), query)))
        self.folder = folder
        self.driver = SparedDriver(url, folder, "pumps", nodes=2, splits=1)
        self._producer = Producer(url, "pumps")
        self.appended = 0

    def append(self, count: int = 20) -> None:
        rows = [{"at": 1_000 + n, "litres": n} for n in range(count)]
        self._producer.append({1: pa.RecordBatch.from_pylist(rows, PUMPS.arrow)})
        self.appended += count

    def counted(self) -> int:
        windows = read_windows(self.client, "pumps", 5, computation_of(COUNTS, PUMPS.kinds))
        return sum(row.values["v"] for row in windows)

    def are_counted(self) -> None:
        """Return once every record is in the results."""
        self.driver.wait_for(lambda _: self.counted() >= self.appended, "all records")
        assert self.counted() == self.appended, "a record is counted twice"


@pytest.fixture
def pumps(tmp_path: Path) -> Iterator[Pumps]:
    """A cluster whose processes end with the test."""
    (tmp_path / "redis").mkdir()
    with running_redis(tmp_path / "redis") as url:
        pumps = Pumps(url, tmp_path)
        yield pumps
        pumps.driver.end()
        pumps.client.close()


@pytest.mark.spark
@pytest.mark.usefixtures("class_archive")
def test_a_spare_continues_a_killed_driver_exactly(pumps: Pumps) -> None:
    driver = pumps.driver
    driver.start()
    pumps.append()
    pumps.are_counted()
    spare = driver.prepare()
    driver.kill()
    # As if it had been killed when its first batch was written, before Spark marked it as whole.
    commits = pumps.folder / "checkpoint" / "commits"
    for file in commits.iterdir():
        file.unlink()
    pumps.append()
    driver.start()
    assert driver.process is spare.process
    pumps.are_counted()
    said = driver.log.read_text()
    assert "ready: this process waits for a cluster" not in said, "it goes on with the other's log"
    batches = [row["batch"] for row in driver.telemetry()]
    assert batches == list(range(batches[0], batches[0] + len(batches))), "each batch once"
    # SIGTERM is a stop, as of any driver, after which nothing is left.
    driver.process.terminate()
    assert driver.process.wait(timeout=60) == 0
    wait_for(lambda: not trees.with_environment(MARK, spare.mark), 60.0)
