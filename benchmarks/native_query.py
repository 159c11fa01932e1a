"""Queries written natively in Spark Structured Streaming, over the same log as Weir's.

    python -m benchmarks.native_query --redis-url … --cluster … --queries 10 --checkpoint …

A Python data source yields the records of the log as Arrow batches, between the same positions and
in the same split partitions as Weir's; all else is Spark's own: watermark, window, grouping and
state in RocksDB, in the session that Weir's pipeline uses. Prints one JSON line: the batches of
each query.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from controlplane.wire.log.values import START, LogPosition
from controlplane.wire.records.record_codec import decode_block
from workers.demo.recording import REPORT
from workers.pipeline.spark.connections import log_of
from workers.pipeline.spark.session import SparkSettings, session

DDL: Final = "ts timestamp, car int, x int, y int, speed int, stream int"
# Spark takes columns as its own types only: time in microseconds, and what may be null.
_PLAIN: Final = [pa.field(field.name, field.type) for field in REPORT.arrow]
_ROWS: Final = pa.schema([*_PLAIN, pa.field("stream", pa.int32())])
ROWS: Final = _ROWS.set(0, pa.field("ts", pa.timestamp("us", tz="UTC")))
# Where the checked run leaves the windows that it has seen.
Seen = dict[tuple[int, int], list[Any]]


class NativeLog(DataSource):
    """The data source `native_log`; options: cluster, redis_url, streams, splits, max_records."""

    @classmethod
    def name(cls) -> str:
        """Return the name that `readStream.format` takes."""
        return "native_log"

    def schema(self) -> str:
        """Return the columns of a record and its stream."""
        return DDL

    def streamReader(self, schema: StructType) -> "RecordReader":  # noqa: N802 - Spark's name
        """Return the reader of one streaming query."""
        return RecordReader(
            self.options["cluster"],
            self.options["redis_url"],
            *(int(self.options[name]) for name in ("streams", "splits", "max_records")),
        )


@dataclass
class Split(InputPartition):
    """What one partition reads in one batch."""

    split: int
    start: str
    end: str


@dataclass
class RecordReader(DataSourceStreamReader):
    """Reads the log between two cuts."""

    cluster: str
    redis_url: str
    streams: int
    splits: int
    max_records: int

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the start of the log."""
        return {"position": START, "total": 0}

    def latestOffset(self, start: dict[str, Any], limit: object) -> dict[str, Any]:  # noqa: N802
        """Return where the next batch ends."""
        source = log_of("", self.redis_url, self.cluster)
        cut = source.position_after(LogPosition(**start), self.max_records)
        return {"position": cut.position, "total": cut.total}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return one partition per split node."""
        return [Split(split, start["position"], end["position"]) for split in range(self.splits)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of the split node's streams."""
        assert isinstance(partition, Split)
        own = [s for s in range(1, self.streams + 1) if s % self.splits == partition.split]
        source = log_of("", self.redis_url, self.cluster)
        entries = source.read_streams(own, partition.start, partition.end)
        batches = [
            _with_stream(decode_block(entry.block).records, stream)
            for stream, read in entries.items()
            for entry in read
        ]
        # One batch per 10,000 records: blocks of a thousand cost Spark a conversion each.
        table = pa.Table.from_batches(batches, _ROWS).combine_chunks().cast(ROWS)
        yield from table.to_batches(10_000)


def _with_stream(block: pa.RecordBatch, stream: int) -> pa.RecordBatch:
    column = pa.array(np.full(block.num_rows, stream, np.int32))
    return pa.RecordBatch.from_arrays([*block.columns, column], schema=_ROWS)


def aggregated(records: DataFrame, key: str, least: int | None) -> DataFrame:
    """Return count, mean and maximum of the speed per key and minute; of `speed > least`."""
    wanted = records if least is None else records.where(f.col("speed") > least)
    return (
        wanted.withWatermark("ts", "5 minutes")
        .groupBy(f.window("ts", "1 minute"), key)
        .agg(f.count("*").alias("n"), f.avg("speed").alias("mean"), f.max("speed").alias("highest"))
    )


def combined(records: DataFrame, key: str, predicates: Sequence[int]) -> DataFrame:
    """Return the aggregates of all predicates `speed > least` in one query."""
    aggregates = [
        f.expr(f"{call} FILTER (WHERE speed > {least})").alias(f"{name}_{least}")
        for least in predicates
        for name, call in (("n", "count(*)"), ("mean", "avg(speed)"), ("highest", "max(speed)"))
    ]
    grouped = records.withWatermark("ts", "5 minutes").groupBy(f.window("ts", "1 minute"), key)
    return grouped.agg(*aggregates)


def started(
    spark: SparkSession, options: argparse.Namespace, index: int, seen: Seen
) -> StreamingQuery:
    """Start query number `at`; only a checked run looks at what comes out."""
    records = spark.readStream.format("native_log")
    for name in ("cluster", "redis_url", "streams", "splits", "max_records"):
        records = records.option(name, getattr(options, name))
    if options.combined:
        counted = combined(records.load(), options.key, range(options.queries))
    else:
        counted = aggregated(records.load(), options.key, index if options.distinct else None)
    writer = (
        counted.writeStream.outputMode("update")
        .option("checkpointLocation", str(Path(options.checkpoint) / str(index)))
        .trigger(processingTime="200 milliseconds")
    )
    if not options.sample:
        return writer.format("noop").start()

    def look(batch: DataFrame, _: int) -> None:
        ms = f.unix_millis(f.col("window.start"))
        for row in batch.where(ms.isin(options.sample)).select(ms.alias("start"), "*").collect():
            seen[row["start"], row[options.key]] = [row["n"], row["mean"], row["highest"]]

    return writer.foreachBatch(look).start()


def finished(queries: Sequence[StreamingQuery], records: int, until: float) -> list[Any]:
    """Wait until all queries have read so many records; return their batches so far."""
    while True:
        batches = [
            [json.loads(progress.json) for progress in query.recentProgress] for query in queries
        ]
        failed = [query.exception() for query in queries if not query.isActive]
        if failed:
            raise RuntimeError(str(failed[0]))
        done = [sum(progress["numInputRows"] for progress in batch) >= records for batch in batches]
        if all(done) or time.monotonic() > until:
            return batches
        time.sleep(0.5)


def main() -> int:
    """Run the queries to the end of the log, or of the time."""
    options = parse_options()
    # The native query's work is the JVM's own: it has Spark's usual compiler and collector.
    usual = {
        "spark.driver.extraJavaOptions": "",
        "spark.executor.extraJavaOptions": "",
        "spark.driver.memory": options.memory,
    }
    spark = session(f"native-{options.cluster}", options.partitions, SparkSettings(conf=usual))
    spark.dataSource.register(NativeLog)
    until = time.monotonic() + options.seconds
    seen: Seen = {}
    count = 1 if options.combined else options.queries
    queries = [started(spark, options, index, seen) for index in range(count)]
    batches = finished(queries, options.records, until)
    for query in queries:
        query.stop()
    rows = [[*place, *values] for place, values in sorted(seen.items())]
    print(json.dumps({"batches": batches, "seen": rows}))
    spark.stop()
    return 0


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.native_query", description=__doc__)
    for name in ("--redis-url", "--cluster", "--checkpoint"):
        parser.add_argument(name, required=True)
    for name, number in (
        ("--queries", 1), ("--streams", 20), ("--splits", 2), ("--partitions", 2),
        ("--max-records", 200_000), ("--records", 1), ("--seconds", 120),
    ):  # fmt: skip
        parser.add_argument(name, type=int, default=number)
    parser.add_argument("--key", default="car")
    parser.add_argument("--distinct", action="store_true", help="each query with its own predicate")
    parser.add_argument(
        "--combined", action="store_true", help="one query with an aggregate for each predicate"
    )
    parser.add_argument("--memory", default="3g", help="of the JVM")
    parser.add_argument("--sample", type=int, nargs="*", help="starts of windows to be printed")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
