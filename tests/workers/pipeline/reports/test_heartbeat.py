"""The driver's heartbeat in a real Redis: its process, and its JVM."""

import json
import os
import threading
from typing import Any, cast

import pytest
import redis

from controlplane.wire import keys
from tests.controlplane.processes.runtime.waiting import wait_for
from workers.agent.heartbeats import Heartbeat as Seen
from workers.agent.heartbeats import heartbeat_of
from workers.pipeline.reports import heartbeat as heartbeat_module
from workers.pipeline.reports.heartbeat import DriverHeartbeat, ProgressListener


def read(client: "redis.Redis") -> Seen:
    found = heartbeat_of(client.hgetall(keys.driver_key("ny")))  # type: ignore[arg-type]
    assert found is not None
    return found


def test_the_answers_of_an_earlier_jvm_are_not_taken_for_this_one(
    redis_client: "redis.Redis",
) -> None:
    """It starts for a minute or more, in which it cannot answer: that is not a silence."""
    key = keys.driver_key("ny")
    redis_client.hset(key, mapping={"pid": 1, "beat_ms": 5, "jvm_ms": 5, "phase": "Waiting"})
    with DriverHeartbeat(redis_client, "ny"):
        found = read(redis_client)
    assert (found.pid, found.state, found.jvm_ms, found.phase) == (os.getpid(), "starting", 0, "")


def test_a_jvm_that_hangs_leaves_its_last_answer(
    redis_client: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the process beats on."""
    monkeypatch.setattr(heartbeat_module, "BEAT_SECONDS", 0.05)
    hangs, asked = threading.Event(), []

    def ask() -> str:
        asked.append(1)
        if len(asked) > 1:
            hangs.wait(30)
        return "Waiting for data"

    with DriverHeartbeat(redis_client, "ny") as heartbeat:
        heartbeat.watch_jvm(ask)
        wait_for(lambda: len(asked) == 2)
        first = read(redis_client)
        assert first.jvm_ms
        assert first.phase == "Waiting for data"
        wait_for(lambda: read(redis_client).beat_ms > first.beat_ms)
        assert read(redis_client).jvm_ms == first.jvm_ms
    hangs.set()


class _Event:
    """An event in the JVM, of which each field would be a call."""

    def progress(self) -> "_Event":
        return self

    def json(self) -> str:
        return json.dumps({
            "batchId": 7, "durationMs": {"triggerExecution": 40}, "sources": [{"endOffset": 3}],
            "stateOperators": [{"numRowsTotal": 5, "customMetrics": {"rocksdbSstFileSize": 9}}],
        })  # fmt: skip


def test_a_report_of_spark_is_read_by_one_call(redis_client: "redis.Redis") -> None:
    heartbeat = DriverHeartbeat(redis_client, "ny")
    ProgressListener(redis_client, "ny", heartbeat).onQueryProgress(_Event())
    ((_, fields),) = cast("Any", redis_client.xrange(keys.progress_key("ny")))
    row = json.loads(fields[b"p"])
    assert (row["spark_batch"], row["durations_ms"]["triggerExecution"]) == (7, 40)
    assert (row["state_rows"], row["rocksdb"]) == (5, {"rocksdbSstFileSize": 9})
    driver = cast("Any", redis_client.hgetall(keys.driver_key("ny")))
    assert (driver[b"state"], driver[b"batch"]) == (b"running", b"7")
