"""The driver's heartbeat in a real Redis: its process, and its JVM."""

import os
import threading

import pytest
import redis

from controlplane.wire import keys
from tests.controlplane.processes.runtime.waiting import wait_for
from workers.agent.heartbeats import Heartbeat as Seen
from workers.agent.heartbeats import heartbeat_of
from workers.pipeline.reports import heartbeat as heartbeat_module
from workers.pipeline.reports.heartbeat import DriverHeartbeat


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
