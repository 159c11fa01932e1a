"""A column becomes wider while windows are open: results are as if it had always been so."""

import json
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from algorithms.partitioning.catalog import grouping_text
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import SetSchema
from controlplane.wire.routing.query_actions import AddQuery, MoveTasks
from controlplane.wire.routing.route import NO_AGGREGATOR
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.nightly import by_night
from tests.support.pipeline import Pipeline
from tests.support.schemas import assigned
from tests.support.whole_results import read_windows

START = datetime(2026, 1, 1, tzinfo=UTC)
STREAMS = (1, 2)
PARTIAL_KEY = grouping_text("partial_key")
ALL = {
    "n": "count(*)", "sum": "sum(v)", "low": "min(v)", "high": "max(v)", "mean": "mean(v)",
    "spread": "variance(v)", "middle": "median(v)", "different": "count_distinct(v)",
    "top": "top_k(v, 3)", "names": "top_k(g, 2)",
}  # fmt: skip
PAIRS = {"n": "count(*)", "sum": "sum(a.v + b.w)", "top": "top_k(b.v, 2)"}
# By query its text, over how many tasks, and whether a node merges it.
QUERIES: dict[int, tuple[QueryText, int, bool]] = {
    1: (QueryText(ALL, window_s=60), 1, False),
    2: (QueryText(ALL, where="v > 2", key=["g"], window_s=60, slide_s=20), 3, False),
    3: (QueryText(ALL, key=["g"], window_s=60, slide_s=30), 3, True),
    4: (QueryText({"n": "count(*)", "top": "top_k(v, 2)"}, key=["v", "g"], window_s=60), 3, False),
    5: (QueryText({"n": "count(*)", "sum": "sum(v)"}, key=["v"], window_s=60, slide_s=20), 3, True),
    6: (QueryText(PAIRS, key=["a.g"], window_s=60, right=[2], on=[["v", "v"]]), 3, False),
    7: (QueryText({"n": "count(*)", "top": "top_k(w, 2)"}, key=["w"], window_s=60), 1, False),
}  # fmt: skip


def schema(kind: str) -> StreamSchema:
    columns = [("at", "timestamp(ms)", False), ("v", kind, True), ("w", "int32", True),
               ("g", "string", True)]  # fmt: skip
    return StreamSchema(tuple(ColumnSpec(*one) for one in columns), "at")


def add(query: int) -> AddQuery:
    text, tasks, merged = QUERIES[query]
    task_ranges = tuple((task % 2, task, task + 1) for task in range(tasks)) if tasks > 1 else ()
    key_grouping, aggregator = (PARTIAL_KEY, 1) if merged else ("", NO_AGGREGATOR)
    return AddQuery(
        query, 0, 0, STREAMS, json.dumps(text.to_json()), task_ranges, key_grouping, aggregator
    )


def rows(rng: random.Random, count: int, fractions: Sequence[Any]) -> dict[int, Any]:
    """Return records of both streams within two minutes."""
    return {
        stream: [
            {
                "at": START + timedelta(seconds=rng.randint(0, 119)),
                "v": rng.choice([None, *range(6), *fractions]),
                "w": rng.randint(0, 3),
                "g": rng.choice(["x", "y", None]),
            }
            for _ in range(count)
        ]
        for stream in STREAMS
    }


def batches(narrow: StreamSchema, wide: StreamSchema) -> Iterator[tuple[StreamSchema, Any]]:
    """Yield the schema and the records of each batch: first of the narrow one, then the wide."""
    rng = random.Random(wide.to_text())
    values: dict[str, list[Any]] = {
        "float": [0.5, 4.25], "decimal": [2**64 - 1], "int": [2**40],
    }  # fmt: skip
    more = values[wide.kinds["v"]]
    for at in range(6):
        yield (narrow, rows(rng, 8, ())) if at < 3 else (wide, rows(rng, 8, more))


def windows(
    client: "redis.Redis", url: str, cluster: str, narrow: StreamSchema, wide: StreamSchema,
) -> dict[Any, Any]:  # fmt: skip
    """Return all windows of all queries after all batches, as they are read in the wide schema."""
    pipeline = Pipeline(client, url, cluster)
    pipeline.publish(*assigned(STREAMS, 1, narrow), *map(add, QUERIES))
    before = narrow
    with Producer(url, cluster) as producer:
        for present, records in batches(narrow, wide):
            if present != before:
                before = present
                # Tasks hand on their state in the batch in which it changes its form.
                moves = [MoveTasks(query, ((1, 0, 1),)) for query in (2, 4, 6)]
                pipeline.publish(*(SetSchema(one, present) for one in STREAMS), *moves)
            producer.append(records, schemas=dict.fromkeys(STREAMS, present))
            assert pipeline.batch(repeat=2)["faults"] == []
        while pipeline.batch():
            pass
    return {
        (query, row.start_ms, *row.key.values()): dict(row.values)
        for query, (text, _, _) in QUERIES.items()
        for row in read_all(client, cluster, query, text, wide)
    }


def read_all(
    client: "redis.Redis", cluster: str, query: int, text: QueryText, wide: StreamSchema
) -> Any:
    computation = computation_of(text, wide.kinds)
    found = read_windows(client, cluster, query, computation)
    places = [(row.start_ms, *row.key.values()) for row in found]
    assert len(places) == len(set(places))
    return found


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [("int16", "float64"), *by_night("schedules", [("uint32", "uint64"), ("int8", "int64")])],
)
def test_results_are_as_if_the_column_had_always_been_wide(
    redis_client: "redis.Redis", redis_server: str, narrow: str, wide: str
) -> None:
    """Sums, sketches, keys, joins and aggregators, with tasks that move and batches repeated."""
    found = windows(redis_client, redis_server, "c", schema(narrow), schema(wide))
    wanted = windows(redis_client, redis_server, "d", schema(wide), schema(wide))
    assert found.keys() == wanted.keys()
    for place, values in wanted.items():
        for name, value in values.items():
            same = found[place][name]
            assert same == (pytest.approx(value) if isinstance(value, float) else value), (
                place, name)  # fmt: skip
