"""Writing a batch twice leaves what writing it once leaves."""

import json
import os
from collections.abc import Collection
from typing import Any, Final, cast

import pyarrow as pa
import pytest
import redis

from controlplane.wire import keys
from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.state_schema import schema_named, schema_names
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.results import watermarks
from controlplane.wire.results.finalized import ResultQuery
from controlplane.wire.results.writer import WindowWriter
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.schemas import assigned
from tests.support.sunk import report
from tests.support.whole_results import VARIABLE, read_windows, results_database
from workers.pipeline.exchange.blocks import pack_tables, unpack_tables
from workers.pipeline.exchange.output import NodeMeasures
from workers.pipeline.reports.telemetry_row import telemetry_row
from workers.pipeline.sink import (
    SinkWriter,
    forget_parts,
    without_queries,
    write_parts,
    write_telemetry,
)
from workers.pipeline.spark.connections import tables_of

METERS: Final = StreamSchema(
    (
        ColumnSpec("ts", "timestamp(ms)", nullable=False),
        ColumnSpec("meter", "string"),
        ColumnSpec("volts", "int64"),
    ),
    event_time="ts",
)
TEXT: Final = QueryText({"n": "count(*)", "mean": "mean(volts)"}, key=("meter",))
READINGS = computation_of(TEXT, METERS.kinds)
(FORM, _, _) = schema_names(layout_of(READINGS))
Changes = list[tuple[str, Any]]


def publish_queries(client: "redis.Redis", *queries: int) -> None:
    """Publish a routing table with queries over one stream."""
    tables_of.cache_clear()
    text = json.dumps(TEXT.to_json())
    ops = [*assigned([1], 1, METERS), *(AddQuery(query, 0, 0, (1,), text) for query in queries)]
    publish(client, "c", RoutingDelta(1, tuple(ops)))


def window(query: int, run: int, count: int, total: int) -> dict[str, Any]:
    """Return one window of one meter, as a node keeps it."""
    place = {"query": query, "run": run, "task": 0, "stream": 1, "pane": 0, "k0": "m-1"}
    return place | {"s0": count, "s1": count, "s2": total}


def write(client: "redis.Redis", report: NodeMeasures, changed: Changes) -> None:
    """Write as the sink does."""
    write_parts(client, "c", report, changed, report.merged)

    def queries(wanted: Collection[int]) -> dict[int, ResultQuery]:
        return dict.fromkeys(wanted, ResultQuery.of(READINGS, 1, 0))

    writer = WindowWriter(results_database(), "c")
    writer.take(report.batch, without_queries(changed, report.merged), queries)
    writer.flush()


def changes(*windows: dict[str, Any]) -> Changes:
    form = schema_named(FORM)
    table = pa.Table.from_pylist(list(windows), form.arrow)
    return list(unpack_tables(pack_tables([(FORM, form, table)])))


def read(client: "redis.Redis", query: int) -> list[tuple[dict[str, Any], int]]:
    """Return values and batch of each window that a reader sees."""
    windows = read_windows(client, "c", query, READINGS)
    return [(dict(row.values), row.batch) for row in windows]


def test_replayed_batch_changes_nothing_and_later_words_win(redis_client: "redis.Redis") -> None:
    first = changes(window(5, 0, 2, 10), window(6, 0, 1, 1))
    for _ in range(2):
        write(redis_client, report(1), first)
    write(redis_client, report(2), changes(window(5, 0, 3, 16)))
    # A task that was thought dead writes what it had.
    write(redis_client, report(1), first)
    assert read(redis_client, 5) == [({"n": 3, "mean": 16 / 3}, 2)]
    assert read(redis_client, 6) == [({"n": 1, "mean": 1.0}, 1)]


def test_parts_for_an_aggregator_are_kept_by_batch(redis_client: "redis.Redis") -> None:
    """However many there are, those of the last batches are there; readers see none."""
    for batch in range(1, 300):
        write(redis_client, report(batch, merged=(5,)), changes(window(5, 0, 2, 10)))
    entries: Any = redis_client.xrange(keys.part_key("c", 5, 0))
    assert [position for position, _ in entries] == [b"%d-0" % at for at in range(291, 300)]
    assert read(redis_client, 5) == []
    left = report(300)
    left.ended.append(5)
    forget_parts(redis_client, "c", left)
    assert not redis_client.exists(keys.part_key("c", 5, 0))


def test_telemetry_row_of_a_batch_is_written_once(redis_client: "redis.Redis") -> None:
    """Latencies run from the append to the commit, weighted by records."""
    report = NodeMeasures(
        node=0, batch=3, version=7, records=4, bytes=100, busy_ms=1.0, tasks=2, state_bytes=10,
        late=0, event_ms=9, arrivals=[[900, 3], [400, 1]],
        sources=[{"split": 0, "streams": {"1": 5}, "bytes": 50, "read": 4, "start": "0-0",
                  "end": "900-0"}],
    )  # fmt: skip
    for _ in range(2):
        write_telemetry(redis_client, "c", telemetry_row([report], emitted_ms=1000))
    assert redis_client.xlen(keys.telemetry_key("c")) == 1


@pytest.mark.parametrize("number", ["99999999-0", ""])
def test_a_foreign_value_does_not_hide_telemetry(redis_client: "redis.Redis", number: str) -> None:
    """An entry with a later number, which Redis would let nothing follow, or a text."""
    key = keys.telemetry_key("c")
    if number:
        redis_client.xadd(key, {"t": "x"}, id=number)
    else:
        redis_client.set(key, "x")
    for _ in range(2):
        write_telemetry(redis_client, "c", {"batch": 3, "dead": {}})
    assert [name for name, _ in cast("Any", redis_client.xrange(key))] == [b"3-0"]


def test_the_writer_commits_watermarks_when_all_rows_are_written(
    redis_client: "redis.Redis", redis_server: str
) -> None:
    """As Spark calls it: rows of each node, then once for the batch."""
    publish_queries(redis_client, 5)
    results_database().close()
    writer = SinkWriter("c", redis_server, os.environ[VARIABLE])
    source = {"split": 0, "streams": {"1": 5}, "newest": {"1": 7_000}, "bytes": 50, "read": 4,
              "start": "0-0", "end": "900-0", "clock_ms": 60_000}  # fmt: skip
    told = report(4)
    told.sources.append(source)
    results = pack_tables([(name, schema_named(name), table)
                    for name, table in changes(window(5, 0, 2, 10))])  # fmt: skip
    row: dict[str, list[Any]] = {
        "node": [0, 0],
        "batch": [4, 4],
        "kind": ["report", "results"],
        "payload": [told.to_json().encode(), results],
        "more": [False, False],
    }
    written = writer.write(iter([pa.RecordBatch.from_pydict(row)]))
    assert watermarks.read(redis_client, "c").batch == -1
    writer.commit([written], 4)
    reached = watermarks.read(redis_client, "c")
    assert (reached.batch, reached.clock_ms) == (4, 60_000)
    assert reached.streams == {1: watermarks.Reached(7_000, None, 60_000)}
    assert read(redis_client, 5) == [({"n": 2, "mean": 5.0}, 4)]
    assert redis_client.xlen(keys.telemetry_key("c")) == 1
