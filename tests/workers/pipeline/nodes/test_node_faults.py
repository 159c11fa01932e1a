"""Nodes that a scenario slows down or makes process nothing."""

import json
import time
from datetime import UTC, datetime
from typing import Any

import redis

from controlplane.telemetry.samples import PreviousBatch, sample_of
from controlplane.wire import node_faults
from controlplane.wire.node_faults import LOST, NodeFault
from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.pipeline import Pipeline
from tests.support.schemas import assigned

READINGS = StreamSchema(
    (ColumnSpec("read_at", "timestamp(ms)", nullable=False), ColumnSpec("meter", "int64")),
    event_time="read_at",
)
START = datetime(2026, 5, 1, tzinfo=UTC)
COUNT = QueryText({"n": "count(*)"}, window_s=60)
STREAM, RECORDS = 1, 20
FAR_MS = 60_000


def two_nodes(client: "redis.Redis", url: str) -> Pipeline:
    """Return a pipeline with a query over the same stream on each of two nodes."""
    pipeline = Pipeline(client, url, nodes=2)
    text = json.dumps(COUNT.to_json())
    queries = [AddQuery(node + 1, 0, node, (STREAM,), text) for node in range(2)]
    pipeline.publish(*assigned([STREAM], 1, READINGS), *queries)
    return pipeline


def batch(pipeline: Pipeline, url: str) -> list[dict[str, Any]]:
    """Append twenty records; return the rows of nodes of the batch that reads them."""
    with Producer(url, pipeline.cluster) as producer:
        producer.append({STREAM: [{"read_at": START, "meter": n} for n in range(RECORDS)]})
    return list(pipeline.batch()["nodes"])


def inject(client: "redis.Redis", pipeline: Pipeline, node: int, delay_us: int) -> None:
    until_ms = time.time_ns() // 1_000_000 + FAR_MS
    node_faults.inject(client, pipeline.cluster, NodeFault(node, delay_us, until_ms))


def test_records_of_a_lost_node_wait_until_it_is_back(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    pipeline = two_nodes(redis_client, redis_server)
    inject(redis_client, pipeline, 1, LOST)
    assert [node["waiting"] for node in batch(pipeline, redis_server)] == [0, RECORDS]
    assert [node["waiting"] for node in batch(pipeline, redis_server)] == [0, 2 * RECORDS]
    node_faults.remove(redis_client, pipeline.cluster, 1)
    assert [node["waiting"] for node in batch(pipeline, redis_server)] == [0, 0]


def test_the_latency_of_a_lost_node_is_the_age_of_its_records(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """Also that of the cluster: the policy's limit of the latency is exceeded while they wait."""
    pipeline = two_nodes(redis_client, redis_server)
    inject(redis_client, pipeline, 1, LOST)
    batch(pipeline, redis_server)
    time.sleep(1)
    with Producer(redis_server, pipeline.cluster) as producer:
        producer.append({STREAM: [{"read_at": START, "meter": 1}]})
    row = pipeline.batch()
    other, lost = row["nodes"]
    assert lost["latency"]["n"] == 0
    assert lost["latency"]["p95"] >= 1000
    assert lost["latency"]["p95"] > other["latency"]["p95"]
    assert row["latency"]["p95"] >= 1000
    sample = sample_of(row, PreviousBatch(None, 1000), [100.0, 100.0])
    assert sample["p95"] == row["latency"]["p95"]
    assert sample["node_p95"][1] >= 1000


def test_a_slow_node_needs_longer_for_each_record(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    pipeline = two_nodes(redis_client, redis_server)
    inject(redis_client, pipeline, 0, 10_000)
    slow, other = batch(pipeline, redis_server)
    assert slow["busy"] >= RECORDS * 0.01
    assert other["busy"] < RECORDS * 0.01


def test_a_fault_has_no_effect_after_its_end(redis_client: "redis.Redis") -> None:
    now_ms = time.time_ns() // 1_000_000
    node_faults.inject(redis_client, "c", NodeFault(0, LOST, now_ms + FAR_MS))
    node_faults.inject(redis_client, "c", NodeFault(3, 50, now_ms + 2 * FAR_MS))
    assert node_faults.active(redis_client, "c", now_ms) == {0: LOST, 3: 50}
    assert node_faults.active(redis_client, "c", now_ms + FAR_MS) == {3: 50}
    assert redis_client.ttl("weir:{c}:faults") > 2 * FAR_MS / 1000
