"""What aggregator nodes report of their merging."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.pipeline import Pipeline
from tests.support.schemas import assigned

CARS = StreamSchema(
    (ColumnSpec("read_at", "timestamp(ms)", nullable=False), ColumnSpec("car", "int64")),
    event_time="read_at",
)
START = datetime(2026, 5, 1, tzinfo=UTC)
COUNT = QueryText({"n": "count(*)"}, key=("car",), window_s=60)
STREAM, QUERY, KEYS = 1, 1, 40


def reports(
    client: "redis.Redis", url: str, aggregators: tuple[int, ...]
) -> list[list[dict[str, Any]]]:
    """Return the rows of nodes 0 to 2 of two batches; 40 keys have records in the first."""
    pipeline = Pipeline(client, url, nodes=3)
    first, *more = aggregators or (-1,)
    query = AddQuery(
        QUERY, 0, 0, (STREAM,), json.dumps(COUNT.to_json()), ((0, 0, 1), (1, 1, 2)), "", first,
        tuple(more),
    )  # fmt: skip
    pipeline.publish(*assigned([STREAM], 1, CARS), query)
    rows = []
    with Producer(url, pipeline.cluster) as producer:
        for late_s in (0, 1):
            ended = START + timedelta(seconds=late_s)
            records = [{"read_at": ended, "car": car} for car in range(KEYS if not late_s else 1)]
            producer.append({STREAM: records})
            rows.append(pipeline.batch()["nodes"])
    return rows


@pytest.mark.parametrize("aggregators", [(1,), (2,), (0, 2), (2, 1, 0)])
def test_aggregator_nodes_report_the_partial_results_that_they_merge(
    redis_client: "redis.Redis", redis_server: str, aggregators: tuple[int, ...]
) -> None:
    """A partial result reaches its aggregator node one batch after its task emitted it."""
    first, second = reports(redis_client, redis_server, aggregators)
    assert [node["merged"] for node in first] == [0, 0, 0]
    merged = {node["node"]: node["merged"] for node in second}
    assert sum(merged.values()) == KEYS
    assert {node for node, rows in merged.items() if rows} == set(aggregators)
    for node in second:
        assert (node["merge_busy"] > 0) == (node["node"] in aggregators)
        assert node["merge_busy"] <= node["busy"]


def test_without_an_aggregator_node_nothing_is_merged(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    for batch in reports(redis_client, redis_server, ()):
        assert [(node["merged"], node["merge_busy"]) for node in batch] == [(0, 0.0)] * 3
