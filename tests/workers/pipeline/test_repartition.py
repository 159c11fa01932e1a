"""Another number of partitions for an application with state: nothing lost, nothing doubled."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis

from controlplane.wire import keys
from controlplane.wire.producer import Producer
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import SetNodeCount
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery, MoveTasks
from controlplane.wire.routing.table import RoutingDelta
from tests.support.driver import Driver, Telemetry
from tests.support.schemas import assigned
from tests.support.taxi import STREAMS, taxi_reports
from tests.support.texts import SUMMARY_TEXT
from tests.workers.pipeline.schedules.world import World
from tests.workers.pipeline.test_exactly_once import SPREAD, SPREAD_TEXT, _check_spans
from workers.pipeline.checkpoints.files import AlreadyRunning, Checkpoint, exclusive_lock
from workers.pipeline.repartition import RepartitionRejected, RepartitionRequest, repartition

QUERIES = 18
NODES = 3
MINUTES = 5
Reports = Iterator[dict[int, pa.RecordBatch]]


class Site:
    """One cluster whose checkpoint gets one number of partitions after another."""

    def __init__(self, client: "redis.Redis", url: str, directory: Path) -> None:
        self.url = url
        self.directory = directory
        self.checkpoint = directory / "checkpoint"
        self.world = World(client, "sf")
        self.reports = iter(taxi_reports(limit=200_000))

    def live(self, *turns: Iterable[Action]) -> None:
        """Run; feed and publish in turn; end by -9 in the middle of a batch."""
        with self._driver() as driver, Producer(self.url, "sf") as producer:
            self._feed(producer, driver)
            for ops in turns:
                self.world.publish(ops)
                self._feed(producer, driver)
            self._begin_a_batch(producer, driver)
        # A driver that was killed is thought alive for a while.
        self.world.client.delete(keys.driver_key("sf"))

    def end(self, *ops: Action) -> Telemetry:
        """Run; publish, feed, and read all; return all telemetry."""
        with self._driver() as driver, Producer(self.url, "sf") as producer:
            self._feed(producer, driver)
            self.world.publish(ops)
            self._feed(producer, driver)
            driver.wait_for(self.world.is_read, "batch with the last record")
            return driver.telemetry()

    @contextmanager
    def _driver(self) -> Iterator[Driver]:
        # The settings ask for three partitions all the time: a checkpoint keeps its own.
        driver = Driver(self.url, self.directory, "sf", nodes=NODES, partitions=3)
        driver.start()
        try:
            yield driver
        finally:
            driver.kill()

    def change(self, partitions: int) -> int:
        """Change the number of partitions by the command; return its exit code."""
        command = [
            sys.executable, "-m", "workers.pipeline.repartition", "--cluster", "sf",
            "--checkpoint", str(self.checkpoint), "--partitions", str(partitions),
        ]  # fmt: skip
        with (self.directory / "repartition.log").open("ab") as log:
            environment = {**os.environ, "REDIS_URL": self.url}
            done = subprocess.run(command, stdout=log, stderr=log, check=False, env=environment)
            return done.returncode

    def _feed(self, producer: Producer, driver: Driver) -> None:
        """Append the next minutes whenever those before are read, until the routing is applied.

        The second batch under it takes in what was handed on in the first.
        """
        version = len(self.world.tables) - 1

        def fed(batches: Telemetry) -> bool:
            if not self.world.blocks or (batches and batches[-1]["end"] == self.world.last):
                self._append(producer)
            return [batch["version"] for batch in batches[-2:]] == [version] * 2

        driver.wait_for(fed, "two batches under the newest routing")

    def _append(self, producer: Producer) -> None:
        for minute in islice(self.reports, MINUTES):
            self.world.append(producer, minute)

    def _begin_a_batch(self, producer: Producer, driver: Driver) -> None:
        """Append until Spark has written down a batch that it has not finished."""

        def begun(_: Telemetry) -> bool:
            self._append(producer)
            return Checkpoint.read(self.checkpoint).pending is not None

        driver.wait_for(begun, "batch that has begun")


@pytest.mark.spark
@pytest.mark.nightly("spark")
def test_partitions_and_nodes_change_and_nothing_is_lost_or_doubled(
    redis_client: "redis.Redis", redis_server: str, tmp_path: Path
) -> None:
    """Three nodes in three partitions, five in five, then two nodes, then in one partition.

    The driver is killed within a batch before each change of the partitions. Nodes change by a
    routing version alone, while it runs.
    """
    site = Site(redis_client, redis_server, tmp_path)
    world = site.world
    world.publish([*assigned(range(1, STREAMS + 1)), *_queries()])
    site.live([MoveTasks(SPREAD, ((2, 0, 1),))])
    assert site.change(3) == 1, "it has three already"
    assert site.change(5) == 0
    site.live([SetNodeCount(5), *_to_new_nodes()], chain([SetNodeCount(2)], _all_to(2, world)))
    assert site.change(1) == 0
    batches = site.end(MoveTasks(SPREAD, ((1, 0, 1),)))
    _check_spans(batches, world)
    world.check_windows(batches)
    assert {len(batch["nodes"]) for batch in batches} == {2, 3, 5}
    numbers = [batch["batch"] for batch in batches]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len(list(tmp_path.glob("checkpoint.*-partitions-*"))) == 2


def _queries() -> Iterator[AddQuery]:
    rng = np.random.default_rng(11)
    text = json.dumps(SPREAD_TEXT.to_json())
    task_ranges = ((0, 0, 3), (1, 3, 6), (2, 6, 8))
    everything = tuple(range(1, STREAMS + 1))
    yield AddQuery(SPREAD, 0, 0, everything, text, task_ranges)
    for query in range(1, QUERIES + 1):
        streams = rng.choice(STREAMS, size=int(rng.integers(1, 5)), replace=False) + 1
        yield AddQuery(query, 0, query % 3, tuple(sorted(streams.tolist())), SUMMARY_TEXT)


def _to_new_nodes() -> Iterator[MoveTasks]:
    yield MoveTasks(SPREAD, ((3, 0, 2), (4, 5, 7)))
    yield from (MoveTasks(query, ((4, 0, 1),)) for query in (1, 2, 3))


def _all_to(nodes: int, world: World) -> Iterator[MoveTasks]:
    """Move every task from a node that is to go, with its state."""
    for query, route in world.tables[-1].queries.items():
        moves = [(task % nodes, task, task + 1) for task, node in enumerate(route.owners())
                 if node >= nodes]  # fmt: skip
        if moves:
            yield MoveTasks(query, tuple(moves))


@pytest.fixture
def checkpoint(redis_client: "redis.Redis", tmp_path: Path) -> Path:
    """What Spark leaves of an application of three partitions: one whole batch."""
    query = AddQuery(1, 0, 2, (1,), SUMMARY_TEXT)
    publish(redis_client, "sf", RoutingDelta(1, (*assigned([1], 1), query)))
    for name in ("offsets", "commits"):
        (tmp_path / "there" / name).mkdir(parents=True)
    write_offset(tmp_path / "there", batch=7, version=1)
    return tmp_path / "there"


def write_offset(checkpoint: Path, batch: int, version: int) -> None:
    """Write down a whole batch as Spark does."""
    own = json.dumps({"conf": {"spark.sql.shuffle.partitions": "3"}})
    end = {
        "batch": batch,
        "position": "5-0",
        "total": 9,
        "version": version,
        "export_version": None,
    }
    (checkpoint / "offsets" / str(batch)).write_text(f"v1\n{own}\n{json.dumps(end)}")
    (checkpoint / "commits" / str(batch)).write_text("v1\n{}")


def asked(redis_server: str, checkpoint: Path, partitions: int) -> RepartitionRequest:
    """Return what an operator asks for."""
    return RepartitionRequest("sf", redis_server, checkpoint, partitions)


def test_a_dry_run_says_what_would_be_and_changes_nothing(
    redis_server: str, checkpoint: Path
) -> None:
    """The operator looks before the cluster is stopped for long."""
    before = sorted(checkpoint.rglob("*"))
    outcome = repartition(asked(redis_server, checkpoint, 5), dry_run=True)
    assert (outcome.before, outcome.partitions, outcome.batch) == (3, 5, 7)
    assert sorted(checkpoint.rglob("*")) == before


def test_nothing_is_done_while_a_driver_has_the_checkpoint(
    redis_server: str, checkpoint: Path
) -> None:
    """Two processes on one checkpoint would spoil it."""
    with exclusive_lock(checkpoint), pytest.raises(AlreadyRunning):
        repartition(asked(redis_server, checkpoint, 5))


def test_nothing_is_done_while_a_driver_beats(
    redis_client: "redis.Redis", redis_server: str, checkpoint: Path
) -> None:
    """It may run on another machine, where a lock file need not be seen."""
    seconds, micros = redis_client.time()
    beat: dict[Any, Any] = {"state": "running", "beat_ms": seconds * 1000 + micros // 1000}
    redis_client.hset(keys.driver_key("sf"), mapping=beat)
    with pytest.raises(RepartitionRejected, match="stop the cluster"):
        repartition(asked(redis_server, checkpoint, 5))


def test_the_same_number_is_refused(redis_server: str, checkpoint: Path) -> None:
    """A new checkpoint for nothing would be a risk for nothing."""
    with pytest.raises(RepartitionRejected, match="already"):
        repartition(asked(redis_server, checkpoint, 3))
