"""Spark processes, of a standalone cluster and in pods: one of the executors is killed with -9."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis

from controlplane.wire.producer import Producer
from controlplane.wire.routing.query_actions import AddQuery, MoveTasks
from tests.support.driver import Driver, Telemetry
from tests.support.kubernetes import Pods, running_pods
from tests.support.schemas import assigned
from tests.support.standalone import ClusterDriver, Standalone, running_standalone
from tests.support.taxi import STREAMS, taxi_reports
from tests.support.texts import SUMMARY_TEXT
from tests.workers.pipeline.schedules.world import World
from tests.workers.pipeline.test_exactly_once import SPREAD, SPREAD_TEXT, _check_spans

pytestmark = pytest.mark.nightly("spark")

SLOTS = 4
QUERIES = 24
MINUTES = 5
Reports = Iterator[dict[int, pa.RecordBatch]]


@pytest.mark.spark
@pytest.mark.parametrize("running", [running_standalone, running_pods])
def test_a_killed_executor_loses_and_doubles_nothing(
    redis_client: "redis.Redis",
    redis_server: str,
    tmp_path: Path,
    running: Callable[[Path], AbstractContextManager[Standalone | Pods]],
) -> None:
    """Per query, stream and minute: count, sum and extremes, exactly."""
    (tmp_path / "spark").mkdir()
    with running(tmp_path / "spark") as cluster:
        driver = ClusterDriver(cluster, redis_server, tmp_path, SLOTS)
        world = World(redis_client, driver.cluster)
        world.publish([*assigned(range(1, STREAMS + 1)), *_queries()])
        driver.start()
        try:
            with Producer(redis_server, driver.cluster) as producer:
                killed = _live_through_a_kill(world, producer, driver, cluster)
            driver.wait_for(world.is_read, "batch with the last record")
        finally:
            driver.kill()
    batches = driver.telemetry()
    _check_spans(batches, world)
    world.check_windows(batches)
    assert killed in _executors(batches[:3])
    assert killed not in _executors(batches[-1:])


def test_every_executor_is_ended_with_its_cluster(tmp_path: Path) -> None:
    """A test that fails must not leave Java behind."""
    with running_standalone(tmp_path, workers=1) as cluster:
        (worker,) = cluster.workers
        assert worker.is_running()
    assert not worker.is_running()


def _live_through_a_kill(
    world: World, producer: Producer, driver: Driver, cluster: Standalone | Pods
) -> str:
    """Feed; kill an executor that has nodes; move tasks and feed on. Return which it was."""
    reports = iter(taxi_reports(limit=200_000))
    _feed(world, producer, reports, driver, until_batches=3)
    running, used = cluster.executors(), _executors(driver.telemetry())
    assert len(used) >= 2, "nodes must be on several executors"
    assert used <= running.keys()
    killed = min(used)
    running[killed].kill()
    for minute in islice(reports, MINUTES):
        world.append(producer, minute)
    world.publish([MoveTasks(SPREAD, ((3, 0, 2),)), MoveTasks(1, ((2, 0, 1),))])
    _feed(world, producer, reports, driver, until_batches=len(driver.telemetry()) + 5)
    return killed


def _queries() -> Iterator[AddQuery]:
    rng = np.random.default_rng(7)
    text = json.dumps(SPREAD_TEXT.to_json())
    everything = tuple(range(1, STREAMS + 1))
    task_ranges = ((0, 0, 2), (1, 2, 4), (2, 4, 6), (3, 6, 8))
    yield AddQuery(SPREAD, 0, 0, everything, text, task_ranges)
    for query in range(1, QUERIES + 1):
        streams = rng.choice(STREAMS, size=int(rng.integers(1, 5)), replace=False) + 1
        yield AddQuery(query, 0, query % SLOTS, tuple(sorted(streams.tolist())), SUMMARY_TEXT)


def _executors(batches: list[dict[str, Any]]) -> set[str]:
    return {node["executor"] for batch in batches for node in batch["nodes"]}


def _feed(
    world: World, producer: Producer, reports: Reports, driver: Driver, until_batches: int
) -> None:
    """Append the next minutes whenever those before are read, until so many batches are done."""

    def fed(batches: Telemetry) -> bool:
        if not world.blocks or (batches and batches[-1]["end"] == world.last):
            for minute in islice(reports, MINUTES):
                world.append(producer, minute)
        return len(batches) >= until_batches

    driver.wait_for(fed, f"{until_batches} batches")
