"""Streams that fall silent, and streams whose clocks run away."""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import redis

from controlplane.wire.log import open_log
from controlplane.wire.log.values import Block
from controlplane.wire.producer import Producer, to_block
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.query_actions import AddQuery, MoveTasks
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.pipeline import Pipeline
from tests.support.schemas import assigned
from tests.support.whole_results import read_windows
from workers.pipeline.engine.storage.idle_streams import CLOCK, LogTimes, StreamClock
from workers.pipeline.engine.store import MemoryStore

SENSOR = StreamSchema(
    (ColumnSpec("at", "timestamp(ms)", nullable=False), ColumnSpec("key", "string")),
    event_time="at",
    idle_after_s=0.5,
)
START = datetime(2026, 1, 1, tzinfo=UTC)
JOIN = QueryText({"pairs": "count(*)"}, right=[2], on=[["key", "key"]], window_s=60, lateness_s=0)


@pytest.fixture
def pipeline(redis_client: "redis.Redis", redis_server: str) -> Pipeline:
    found = Pipeline(redis_client, redis_server)
    query = AddQuery(5, 0, 0, (1, 2), json.dumps(JOIN.to_json()))
    found.publish(*assigned([1, 2, 3], 1, SENSOR), query)
    return found


def append(producer: Producer, stream: int, *seconds: int) -> None:
    producer.append({stream: [{"at": START + timedelta(seconds=s), "key": "k"} for s in seconds]})


def pairs(pipeline: Pipeline) -> dict[int, int]:
    """Return the pairs of each window, by its start in seconds."""
    computation = computation_of(JOIN, SENSOR.kinds, SENSOR.kinds)
    rows = read_windows(pipeline.client, pipeline.cluster, 5, computation)
    begin = int(START.timestamp())
    return {row.start_ms // 1000 - begin: row.values["pairs"] for row in rows}


def test_a_silent_stream_does_not_hold_windows_open_and_its_return_is_late(
    pipeline: Pipeline, redis_server: str
) -> None:
    """While it is silent the other's windows close; what it brings for them pairs with nothing."""
    with Producer(redis_server, "c") as producer:
        append(producer, 1, 10)
        append(producer, 2, 20)
        pipeline.batch()
        assert pairs(pipeline) == {0: 1}
        _pass_time(600)
        append(producer, 2, 70, 150, 200)
        late = pipeline.batch()["late"]
        append(producer, 1, 30, 80, 210)
        late += pipeline.batch(repeat=2)["late"]
    assert pairs(pipeline) == {0: 1, 180: 1}
    assert late == 2


def test_what_is_closed_stays_closed_where_the_task_moves(
    pipeline: Pipeline, redis_server: str
) -> None:
    """The other node never had a task of the join; what comes late is as late there."""
    with Producer(redis_server, "c") as producer:
        append(producer, 1, 10)
        append(producer, 2, 20)
        pipeline.batch()
        _pass_time(600)
        append(producer, 2, 70, 150, 200)
        late = pipeline.batch()["late"]
        pipeline.publish(MoveTasks(5, ((1, 0, 1),)))
        append(producer, 2, 201)
        late += pipeline.batch()["late"]
        append(producer, 1, 30, 80, 210)
        late += pipeline.batch(repeat=2)["late"]
    assert pipeline.stores[1].get(CLOCK) is not None
    assert pairs(pipeline) == {0: 1, 180: 2}
    assert late == 2


def _pass_time(ms: int) -> None:
    """Let so much time pass for the log."""
    time.sleep(ms / 1000)


def test_a_stream_that_is_only_behind_is_not_idle(pipeline: Pipeline, redis_server: str) -> None:
    """What is appended and not read yet is found however late the pipeline comes to it."""
    with Producer(redis_server, "c") as producer:
        append(producer, 1, 10)
        append(producer, 2, 20, 200)
        _pass_time(600)
        row = pipeline.batch()
        append(producer, 1, 30)
        row = pipeline.batch()
    assert pairs(pipeline) == {0: 2}
    assert row["late"] == 0


def test_a_stream_is_not_idle_for_a_join_that_has_just_begun(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """The node has not heard of it, for want of queries, however long the node has been there."""
    pipeline = Pipeline(redis_client, redis_server)
    other = QueryText({"n": "count(*)"}, window_s=60)
    other_query = AddQuery(6, 0, 0, (3,), json.dumps(other.to_json()))
    pipeline.publish(*assigned([1, 2, 3], 1, SENSOR), other_query)
    with Producer(redis_server, "c") as producer:
        append(producer, 3, 10)
        pipeline.batch()
        _pass_time(600)
        pipeline.publish(AddQuery(5, 0, 0, (1, 2), json.dumps(JOIN.to_json())))
        append(producer, 2, 20, 200)
        pipeline.batch()
        append(producer, 1, 30)
        row = pipeline.batch()
    assert pairs(pipeline) == {0: 1}
    assert row["late"] == 0


def test_a_runaway_stream_pushes_no_other(pipeline: Pipeline, redis_server: str) -> None:
    """Neither from a producer that says so, nor where one says a newest time that is not true."""
    log = open_log(redis_server, "c")
    with Producer(redis_server, "c") as producer:
        append(producer, 1, 10)
        batch, _ = producer.conform(1, [{"at": START + timedelta(seconds=15), "key": "k"}])
        honest = to_block(batch, SENSOR)
        log.append({1: Block(1, honest.data, 2**55)})
        append(producer, 2, 20)
        row = pipeline.batch()
        append(producer, 1, 30)
        second = pipeline.batch()
    log.close()
    assert row["newest"]["1"] == int((START + timedelta(seconds=10)).timestamp() * 1000)
    assert (row["late"], second["late"]) == (0, 0)
    assert pairs(pipeline) == {0: 3}


def test_what_is_closed_stays_closed_when_an_idle_stream_returns() -> None:
    """Also where its own event time is far behind."""
    clock = StreamClock(idle_ms={1: 100, 2: 100})
    clock._take(LogTimes(1_000, {1: 1_000, 2: 1_000}, clock.idle_ms))
    clock.close({5: (1, 2)}, {1: 10, 2: 20})
    assert clock.closed_until == {5: 10}
    clock._take(LogTimes(1_101, {2: 1_101}, clock.idle_ms))
    clock.close({5: (1, 2)}, {1: 10, 2: 50})
    assert clock.closed_until == {5: 50}
    clock._take(LogTimes(1_102, {1: 1_102}, clock.idle_ms))
    clock.close({5: (1, 2)}, {1: 11, 2: 50})
    assert clock.closed_until == {5: 50}
    assert clock.slowest({1: 11, 2: 50}, (1, 2)) == 11


def test_what_a_node_knows_of_the_log_outlives_a_batch() -> None:
    store = MemoryStore()
    clock = StreamClock.read(store, LogTimes(1_000, {1: 900}, {1: 100, 2: 100}))
    clock.close({5: (1, 2)}, {1: 10})
    clock.save(store, {5: (1, 2)})
    assert replace(StreamClock.read(store), idle_ms=clock.idle_ms) == clock
