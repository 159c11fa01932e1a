"""The Spark sink: results per query, and the telemetry row of each finished batch.

Everything written carries the number of its batch, so writing a batch again after a crash changes
nothing.
"""

import base64
import json
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import redis
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from controlplane.wire import dead_letters, key_samples, keys, measures
from controlplane.wire.aggregates.state_schema import to_bytes
from controlplane.wire.foreign.entries import is_other_type
from controlplane.wire.key_samples import KeySample
from controlplane.wire.results import watermarks
from controlplane.wire.results.finalized import ResultQuery
from controlplane.wire.results.writer import WindowWriter
from controlplane.wire.routing.route import NO_AGGREGATOR
from workers.pipeline.exchange import output, task_states
from workers.pipeline.exchange.blocks import unpack_blocks
from workers.pipeline.exchange.durability import check_parts, mark_part, parts_of_splits, server_of
from workers.pipeline.exchange.output import NodeMeasures
from workers.pipeline.reports.activity import count_step, record_sink_batch
from workers.pipeline.reports.telemetry_row import telemetry_row
from workers.pipeline.routing.compilation import InvalidRoute, computation_of_route
from workers.pipeline.spark.connections import (
    client_of,
    freeze_heap,
    results_of,
    tables_of,
    task_partition,
)
from workers.pipeline.split_nodes.grouping_states import write_reports

logger = logging.getLogger("weir.pipeline")

TELEMETRY_KEPT: Final = 4096
# Batches of which parts are kept for an aggregator node.
_PART_BATCHES: Final = 8
_DUPLICATE: Final = "equal or smaller"
QueryLookup = Callable[[Collection[int]], Mapping[int, ResultQuery]]


class WeirSink(DataSource):
    """The data sink `weir_sink`; options: cluster, redis_url, results_url."""

    @classmethod
    def name(cls) -> str:
        """Return the name that `writeStream.format` takes."""
        return "weir_sink"

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """Return the writer of one streaming query."""
        options = self.options
        return SinkWriter(options["cluster"], options["redis_url"], options["results_url"])


@dataclass
class Written(WriterCommitMessage):
    """The reports of the nodes that one sink task wrote, and the name of this part of the batch."""

    part: str
    reports: list[str] = field(default_factory=list)


@dataclass
class SinkWriter(DataSourceStreamArrowWriter):
    """Writes results on the executors, and telemetry on the driver once all are written."""

    cluster: str
    redis_url: str
    results_url: str

    # Spark's own subclass narrows the argument in the same way, without a type for it.
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:  # type: ignore[override]
        """Write the changed windows of every query and return the reports."""
        client = client_of(self.redis_url)
        # Before the first write.
        server = server_of(client)
        written = Written(f"sink:{task_partition()}")
        collector = output.RowCollector()
        writer = WindowWriter(results_of(self.results_url), self.cluster)
        for rows in iterator:
            for row in rows.to_pylist():
                if row["kind"] == output.REPORT:
                    written.reports.append(row["payload"].decode())
                self._write_row(client, row, collector, writer)
        writer.flush()
        if collector.report is not None:
            mark_part(client, self.cluster, collector.report.batch, written.part, server)
        freeze_heap()
        return written

    def _write_row(
        self,
        client: "redis.Redis",
        row: Mapping[str, Any],
        collector: output.RowCollector,
        writer: WindowWriter,
    ) -> None:
        """Write the contents of a row; windows of a query that continues wait for its last row."""
        report = collector.take(row)
        match row["kind"]:
            case output.REPORT:
                record_sink_batch(client, self.cluster, report.batch)
                forget_parts(client, self.cluster, report)
            case output.BLOCKS:
                for recipients, tables in unpack_blocks(row["payload"]):
                    writer.take_shared(report.batch, recipients, tables, self._queries(report))
            case output.RESULTS | output.MERGED as kind:
                if (changes := collector.changes(row)) is not None:
                    parts = report.merged if kind == output.RESULTS else ()
                    write_parts(client, self.cluster, report, changes, parts)
                    own = without_queries(changes, parts)
                    writer.take(report.batch, own, self._queries(report))
            case output.STATES:
                states = task_states.unpack(row["payload"])
                task_states.write(client, self.cluster, report.batch, states)
            case output.MEASURES:
                measures.write(client, self.cluster, report.node, report.batch, row["payload"])
        count_step(client, self.cluster)

    def _queries(self, report: NodeMeasures) -> QueryLookup:
        """Return the look-up of queries in the routing table of the node's batch."""
        table = tables_of(self.redis_url, self.cluster).of_version(report.version).table

        def of(queries: Collection[int]) -> dict[int, ResultQuery]:
            known = {}
            for query in queries:
                route = table.queries.get(query)
                # A query that has left the table, or that has no columns any more, has no results.
                if route is not None:
                    with suppress(InvalidRoute):
                        computation = computation_of_route(route, table.schemas)
                        # An aggregator node merges the streams.
                        parts = len(route.streams) if route.aggregator == NO_AGGREGATOR else 1
                        known[query] = ResultQuery.of(computation, parts, route.incarnation)
            return known

        return of

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Append the batch's telemetry row. Raises `WritesLost`."""
        written = [item for item in messages if isinstance(item, Written) and item.reports]
        reports = [NodeMeasures.from_json(text) for item in written for text in item.reports]
        if not reports:
            return
        row = telemetry_row(reports, emitted_ms=time.time_ns() // 1_000_000)
        client, batch = client_of(self.redis_url), row["batch"]
        sources = [source for report in reports for source in report.sources]
        server = server_of(client)
        parts = [*(item.part for item in written), *parts_of_splits(sources)]
        check_parts(client, self.cluster, batch, parts)
        waiting, newest = watermarks.in_flight(row), watermarks.newest_of(row)
        watermarks.commit(client, self.cluster, batch, clock_of(reports), waiting, newest)
        write_reports(client, self.cluster, batch, sources)
        write_key_samples(client, self.cluster, sources)
        write_telemetry(client, self.cluster, row)
        mark_part(client, self.cluster, batch, "commit", server)


def write_parts(
    client: "redis.Redis",
    cluster: str,
    report: NodeMeasures,
    changed: Sequence[tuple[str, Any]],
    merged: Collection[int],
) -> None:
    """Write the parts of queries that their aggregator node merges."""
    pipe = client.pipeline(transaction=False)
    for query, tables in _rows_by_query(changed, merged).items():
        fields: dict[Any, Any] = {
            f"{name}#{index}": data
            for name, parts in tables.items()
            for index, data in enumerate(parts)
        }
        key = keys.part_key(cluster, query, report.node)
        # Aggregators read the batch before their own, and again in a replay; none reads older
        # ones.
        oldest = f"{max(0, report.batch - _PART_BATCHES)}-0"
        pipe.xadd(key, fields, id=f"{report.batch}-0", minid=oldest, approximate=False)
    _execute_ignoring_duplicates(pipe)


def _rows_by_query(
    changes: Sequence[tuple[str, Any]], wanted: Collection[int]
) -> dict[int, dict[str, list[bytes]]]:
    """Return the changed windows of each wanted query: the bytes of its rows, by state schema."""
    result: dict[int, dict[str, list[bytes]]] = {}
    for name, rows in changes:
        query = np.asarray(rows["query"])
        for item in sorted({*np.unique(query).tolist()}.intersection(wanted)):
            data = to_bytes(rows.filter(pa.array(query == item)))
            result.setdefault(item, {}).setdefault(name, []).append(data)
    return result


def without_queries(
    changes: Sequence[tuple[str, Any]], queries: Collection[int]
) -> Sequence[tuple[str, Any]]:
    """Return the changed windows of all other queries."""
    if not queries:
        return changes
    others = list(queries)
    return [(name, rows.filter(pa.array(~np.isin(np.asarray(rows["query"]), others))))
            for name, rows in changes]  # fmt: skip


def forget_parts(client: "redis.Redis", cluster: str, report: NodeMeasures) -> None:
    """Delete the parts that the node emitted for queries that have left the table, and samples."""
    names = [keys.part_key(cluster, query, report.node) for query in report.ended]
    if names:
        client.delete(*names)
        key_samples.forget(client, cluster, report.ended)


def write_key_samples(
    client: "redis.Redis", cluster: str, sources: Sequence[Mapping[str, Any]]
) -> None:
    """Store the samples of keys that split nodes took; a failure does not concern the batch."""
    try:
        texts = [text for source in sources for text in source.get("key_samples", ())]
        samples = [KeySample.from_bytes(base64.b64decode(text)) for text in texts]
        if samples:
            key_samples.write(client, cluster, samples)
    except Exception:
        logger.exception("samples of keys are lost")


def clock_of(reports: Sequence[NodeMeasures]) -> int:
    """Return the newest append time (ms) that a batch has read, 0 if it read nothing.

    By this clock, that of the log, streams are idle: a pipeline that is behind has not yet read
    what others wait for.
    """
    sources = [source for report in reports for source in report.sources]
    return max((item.get("appended_ms", item["clock_ms"]) for item in sources), default=0)


def write_telemetry(client: "redis.Redis", cluster: str, row: Mapping[str, Any]) -> None:
    """Append the telemetry row of one batch."""
    key, number = keys.telemetry_key(cluster), f"{row['batch']}-0"
    fields: dict[Any, Any] = {"t": json.dumps(row, separators=(",", ":"))}
    try:
        client.xadd(key, fields, id=number, maxlen=TELEMETRY_KEPT)
    except redis.ResponseError as error:
        if _DUPLICATE not in str(error) and not is_other_type(error):
            raise
        # Not a replay: a foreign value, or an entry with a later number, would hide all batches.
        if is_other_type(error) or not client.xrange(key, number, number):
            client.delete(key)
            client.xadd(key, fields, id=number, maxlen=TELEMETRY_KEPT)
    dead_letters.count(client, cluster, row["batch"], row["dead"])


def _execute_ignoring_duplicates(pipe: Any) -> None:
    for outcome in cast("list[Any]", pipe.execute(raise_on_error=False)):
        if isinstance(outcome, Exception) and _DUPLICATE not in str(outcome):
            raise outcome
