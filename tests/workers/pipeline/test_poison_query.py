"""A cluster survives the end of Python processes, and a Redis that is away.

Queries that cause it fail, all others go on.
"""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis

from controlplane.wire import attempts
from controlplane.wire.language.registered import function
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.driver import COMMITTER, PLANNER, SERVER, WORKER, Driver, kill_all
from tests.support.redis_server import RedisServer
from tests.support.schemas import FAR_S, assigned
from tests.support.whole_results import read_windows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.nightly("spark"),
]
ROOT = Path(__file__).parents[3]
PUMPS = StreamSchema(
    (ColumnSpec("at", "timestamp(ms)", nullable=False), ColumnSpec("litres", "int64")),
    event_time="at",
    max_future_s=FAR_S,
)
POISON = 41
AWAY_S = 10.0
GOOD = QueryText({"v": "count(*)"}, window_s=60.0)
BAD = QueryText({"v": "max(test_ends_worker(litres))"}, window_s=60.0)
# Split nodes evaluate the key of a query with several tasks.
BAD_KEY = QueryText({"n": "count(*)"}, window_s=60.0,
                    columns={"of": "test_ends_worker(litres)"}, key=["of"])  # fmt: skip
SPLIT = ((0, 0, 2), (1, 2, 4))


# The driver's workers import this module, because WEIR_FUNCTIONS names it.
@function(takes=("int",), gives="int", name="test_ends_worker")
def ends_worker(values: Any) -> Any:
    if (values == POISON).any():
        os._exit(7)
    return values


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis of its own, which keeps every append that it acknowledged."""
    (tmp_path / "redis").mkdir()
    with RedisServer(tmp_path / "redis", fsync="always") as server:
        yield server


def test_queries_that_end_workers_fail_and_killed_processes_are_replaced(
    server: RedisServer, tmp_path: Path
) -> None:
    """All with one driver: Spark repeats a task, and the query continues in the same JVM."""
    client = redis.Redis.from_url(server.url)
    texts = {5: (GOOD, ()), 6: (BAD, ()), 7: (BAD_KEY, SPLIT)}
    queries = [AddQuery(query, 0, 1, (1,), json.dumps(text.to_json()), tasks)
               for query, (text, tasks) in texts.items()]  # fmt: skip
    publish(client, "f", RoutingDelta(1, (*assigned([1], 1, PUMPS), *queries)))
    environment = {"WEIR_FUNCTIONS": __name__, "PYTHONPATH": str(ROOT)}
    driver = Driver(server.url, tmp_path, "f", environment, nodes=2, splits=1)
    driver.start()
    try:
        # A first batch without records.
        driver.wait_for(bool, "batch")
        with Producer(server.url, "f") as producer:
            records = 20
            producer.append({1: readings(POISON - 10, POISON + 10)})
            driver.wait_for(
                lambda rows: len({fault["query"] for fault in faults(rows)}) > 1, "fault"
            )
            batch = attempts.newest(client, "f")
            assert batch is not None
            assert batch.failures == 0
            for module in (WORKER, COMMITTER, PLANNER, "pyspark", SERVER):
                kill_all(driver.python_processes(module)[int(module == "pyspark") :])
                producer.append({1: readings(0, 30)})
                records += 30
                driver.wait_for(lambda rows: read(rows) == records, f"end of {module}")  # noqa: B023
        for hangs in (False, True):
            records += append_around_an_outage(server, hangs=hangs)
            driver.wait_for(lambda rows: read(rows) == records, "return of Redis")  # noqa: B023
    finally:
        driver.kill()
    told = {fault["query"]: fault for fault in faults(driver.telemetry())}
    assert told.keys() == {6, 7}
    for fault in told.values():
        assert fault["why"] == "ended the process that evaluates it: exit code 7"
        assert fault["stage"] == "evaluate"
        assert json.loads(fault["sample"])
    windows = read_windows(client, "f", 5, computation_of(GOOD, PUMPS.kinds))
    assert sum(row.values["v"] for row in windows) == records


def append_around_an_outage(server: RedisServer, *, hangs: bool) -> int:
    """Append records while batches run, let Redis be away for ten seconds, and append again."""
    with Producer(server.url, "f") as producer:
        for _ in range(20):
            producer.append({1: readings(0, 30)})
            time.sleep(0.1)
    server.send_signal(signal.SIGSTOP) if hangs else server.kill()
    time.sleep(AWAY_S)
    server.send_signal(signal.SIGCONT) if hangs else server.start()
    with Producer(server.url, "f") as producer:
        producer.append({1: readings(0, 30)})
    return 21 * 30


def read(rows: list[dict[str, Any]]) -> int:
    """Return the records that batches have read."""
    return sum(row["read"] for row in rows)


def readings(first: int, stop: int) -> pa.RecordBatch:
    rows = [{"at": 1_000 + n, "litres": n} for n in range(first, stop)]
    return pa.RecordBatch.from_pylist(rows, PUMPS.arrow)


def faults(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [fault for row in rows for fault in row["faults"]]
