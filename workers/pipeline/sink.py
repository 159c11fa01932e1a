"""The Spark sink: results per query, and the telemetry row that says a batch is done.

Everything written carries an explicit id made of the batch number, so writing a batch again
after a crash is refused entry by entry and changes nothing.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import pyarrow as pa
import redis
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from controlplane.wire import keys, measures, results
from workers.pipeline import transfer
from workers.pipeline.activity import count_step, note_sink
from workers.pipeline.changes import by_query
from workers.pipeline.connections import client_of, settle
from workers.pipeline.report import NodeReport
from workers.pipeline.telemetry import telemetry_row

TELEMETRY_KEPT: Final = 4096
# A result key nobody ends (its node's state was thrown away) goes by itself after a week.
_UNTOUCHED_SECONDS: Final = 7 * 86_400
_DUPLICATE: Final = "equal or smaller"


class WeirSink(DataSource):
    """The data sink `weir_sink`; options: cluster, redis_url."""

    @classmethod
    def name(cls) -> str:
        """Return the name that `writeStream.format` takes."""
        return "weir_sink"

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """Return the writer of one streaming query."""
        return SinkWriter(self.options["cluster"], self.options["redis_url"])


@dataclass
class Written(WriterCommitMessage):
    """The reports of the nodes that one sink task wrote."""

    reports: list[str] = field(default_factory=list)


@dataclass
class SinkWriter(DataSourceStreamArrowWriter):
    """Writes results on the executors, and telemetry on the driver once all are written."""

    cluster: str
    redis_url: str

    # Spark's own subclass narrows the argument in the same way, without saying so in types.
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:  # type: ignore[override]
        """Append the changed windows of every query and return the reports."""
        client = client_of(self.redis_url)
        written = Written()
        for rows in iterator:
            for row in rows.to_pylist():
                report = NodeReport.from_json(row["report"])
                note_sink(client, self.cluster, report.batch)
                write_results(client, self.cluster, report, by_query(row["results"]))
                write_merged(client, self.cluster, report, by_query(row["merged"]))
                measures.write(client, self.cluster, report.node, report.batch, row["measures"])
                transfer.write(client, self.cluster, row["batch"], transfer.unpacked(row["states"]))
                expire_results(client, self.cluster, report.ended)
                written.reports.append(row["report"])
                count_step(client, self.cluster)
        settle()
        return written

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Append the batch's telemetry row."""
        texts = [text for message in messages if isinstance(message, Written)
                 for text in message.reports]  # fmt: skip
        if texts:
            reports = [NodeReport.from_json(text) for text in texts]
            emitted_ms = time.time_ns() // 1_000_000
            write_telemetry(client_of(self.redis_url), self.cluster, reports, emitted_ms)


def write_results(
    client: "redis.Redis",
    cluster: str,
    report: NodeReport,
    changed: Mapping[int, Mapping[str, Sequence[bytes]]],
) -> None:
    """Append one entry per query: its changed windows, by form of rows.

    Nodes that share a query have a stream each: the ids of one stream only grow. Where a merge node
    puts them together, a reader need not know of them.
    """
    pipe = client.pipeline(transaction=False)
    split, merged = set(report.split), set(report.merged)
    for query, tables in changed.items():
        key = keys.result_key(cluster, query)
        if query in split or query in merged:
            key = keys.part_key(cluster, query, report.node)
        if query in split - merged:
            nodes = keys.parts_key(cluster, query)
            pipe.sadd(nodes, report.node)
            pipe.expire(nodes, _UNTOUCHED_SECONDS)
        _append(pipe, key, report.batch, tables)
    _execute_ignoring_duplicates(pipe)


def write_merged(
    client: "redis.Redis",
    cluster: str,
    report: NodeReport,
    changed: Mapping[int, Mapping[str, Sequence[bytes]]],
) -> None:
    """Append what a merge node has put together of each of its queries."""
    pipe = client.pipeline(transaction=False)
    for query, tables in changed.items():
        _append(pipe, keys.result_key(cluster, query), report.batch, tables)
    _execute_ignoring_duplicates(pipe)


def _append(pipe: Any, key: str, batch: int, tables: Mapping[str, Sequence[bytes]]) -> None:
    fields: dict[Any, Any] = {
        f"{name}#{at}": data for name, parts in tables.items() for at, data in enumerate(parts)
    }
    pipe.xadd(key, fields, id=f"{batch}-0", maxlen=results.KEPT_ENTRIES)
    pipe.expire(key, _UNTOUCHED_SECONDS)


def expire_results(client: "redis.Redis", cluster: str, ended: Sequence[int]) -> None:
    """Let the results of departed queries go after a while."""
    pipe = client.pipeline(transaction=False)
    for query, names in zip(ended, results.keys_of(client, cluster, ended), strict=True):
        for name in (*names, keys.parts_key(cluster, query)):
            pipe.expire(name, results.KEPT_SECONDS)
    pipe.execute()


def write_telemetry(
    client: "redis.Redis", cluster: str, reports: Sequence[NodeReport], emitted_ms: int
) -> None:
    """Append the telemetry row of one batch."""
    row = telemetry_row(reports, emitted_ms)
    pipe = client.pipeline(transaction=False)
    pipe.xadd(
        keys.telemetry_key(cluster),
        {"t": json.dumps(row, separators=(",", ":"))},
        id=f"{row['batch']}-0",
        maxlen=TELEMETRY_KEPT,
    )
    _execute_ignoring_duplicates(pipe)


def _execute_ignoring_duplicates(pipe: Any) -> None:
    for outcome in cast("list[Any]", pipe.execute(raise_on_error=False)):
        if isinstance(outcome, Exception) and _DUPLICATE not in str(outcome):
            raise outcome
