"""A cluster survives a query that ends its worker: the query fails, and all others go on."""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis

from controlplane.wire import attempts, keys
from controlplane.wire.language.registered import function
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.driver import Driver
from tests.support.schemas import FAR_S, assigned
from tests.support.whole_results import read_windows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif("WEIR_SCHEDULES" not in os.environ, reason="ends drivers: make nightly"),
]
ROOT = Path(__file__).parents[3]
PUMPS = StreamSchema(
    (ColumnSpec("at", "timestamp(ms)", nullable=False), ColumnSpec("litres", "int64")),
    event_time="at",
    max_future_s=FAR_S,
)
POISON = 41
GOOD = QueryText({"v": "count(*)"}, window_s=60.0)
BAD = QueryText({"v": "max(test_ends_worker(litres))"}, window_s=60.0)


# The driver's workers import this module, because WEIR_FUNCTIONS names it.
@function(takes=("int",), gives="int", name="test_ends_worker")
def ends_worker(values: Any) -> Any:
    if (values == POISON).any():
        os._exit(7)
    return values


def test_a_query_that_ends_its_worker_fails_and_the_others_go_on(
    redis_client: "redis.Redis", redis_server: str, tmp_path: Path
) -> None:
    queries = [AddQuery(query, 0, 1, (1,), json.dumps(text.to_json()))
               for query, text in ((5, GOOD), (6, BAD))]  # fmt: skip
    publish(redis_client, "f", RoutingDelta(1, (*assigned([1], 1, PUMPS), *queries)))
    environment = {"WEIR_FUNCTIONS": __name__, "PYTHONPATH": str(ROOT)}
    driver = Driver(redis_server, tmp_path, "f", environment, nodes=2, splits=1)
    driver.start()
    try:
        with Producer(redis_server, "f") as producer:
            producer.append({1: readings(POISON - 10, POISON + 10)})
            assert driver.process is not None
            assert driver.process.wait(timeout=150) == 1
            assert driver.telemetry() == []
            # Two more starts of Spark would show nothing new.
            redis_client.hset(keys.attempts_key("f"), "count", str(attempts.FAILURES))
            driver.start()
            driver.wait_for(lambda rows: bool(faults(rows)), "fault")
            producer.append({1: readings(0, 30)})
            driver.wait_for(lambda rows: rows[-1]["delivered"] == 30, "30 more records")
    finally:
        driver.kill()
    told = faults(driver.telemetry())
    assert {fault["query"] for fault in told} == {6}
    assert told[0]["why"] == "ended the process that evaluates it: exit code 7"
    assert told[0]["stage"] == "evaluate"
    assert json.loads(told[0]["sample"])
    windows = read_windows(redis_client, "f", 5, computation_of(GOOD, PUMPS.kinds))
    assert sum(row.values["v"] for row in windows) == 50


def readings(first: int, stop: int) -> pa.RecordBatch:
    rows = [{"at": 1_000 + n, "litres": n} for n in range(first, stop)]
    return pa.RecordBatch.from_pylist(rows, PUMPS.arrow)


def faults(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [fault for row in rows for fault in row["faults"]]
