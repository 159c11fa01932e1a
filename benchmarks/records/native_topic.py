"""A query written natively in Spark Structured Streaming over a topic, for `topic_speed`.

    python -m benchmarks.records.native_topic --servers … --topic … --checkpoint …

A Python data source reads the messages, as Spark's own source for Kafka needs packages of the JVM:
a consumer that each process keeps, and Arrow's reader of JSON for the messages of a range at once.
All else is Spark's own, in the session that Weir's pipeline uses. Prints one JSON line: batches.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from benchmarks.native_query import finished
from workers.pipeline.spark.session import SparkSettings, session

arrow_json: Any = import_module("pyarrow.json")
DDL: Final = "at timestamp, customer string, amount double, items int"
_READ: dict[str, pa.DataType] = {
    "at": pa.int64(), "customer": pa.string(), "amount": pa.float64(), "items": pa.int32(),
}  # fmt: skip
READ: Final = pa.schema(_READ)
ROWS: Final = READ.set(0, pa.field("at", pa.timestamp("us", "UTC")))


class NativeTopic(DataSource):
    """The data source `native_topic`; options: servers, topic, partitions, max_records."""

    @classmethod
    def name(cls) -> str:
        """Return the name that `readStream.format` takes."""
        return "native_topic"

    def schema(self) -> str:
        """Return the columns of a record."""
        return DDL

    def streamReader(self, schema: StructType) -> "MessageReader":  # noqa: N802 - Spark's name
        """Return the reader of one streaming query."""
        numbers = (int(self.options[name]) for name in ("partitions", "max_records"))
        return MessageReader(self.options["servers"], self.options["topic"], *numbers)


@dataclass
class Range(InputPartition):
    """The messages [start, stop) of a partition."""

    number: int
    start: int
    stop: int


@dataclass
class MessageReader(DataSourceStreamReader):
    """Reads the topic between two offsets of each partition."""

    servers: str
    topic: str
    partitions_count: int
    max_records: int

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the start of each partition."""
        return {str(number): 0 for number in range(self.partitions_count)}

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:  # noqa: N802
        """Return where the next batch ends: as many messages of each partition."""
        consumer, share = consumer_of(self.servers), self.max_records // self.partitions_count
        ends = {name: consumer.get_watermark_offsets(TopicPartition(self.topic, int(name)))[1]
                for name in start}  # fmt: skip
        return {name: min(offset + share, ends[name]) for name, offset in start.items()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return one partition for each of the topic."""
        return [Range(int(name), offset, end[name]) for name, offset in start.items()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range."""
        assert isinstance(partition, Range)
        if values := self._values(partition):
            data = b"\n".join(values)
            options = arrow_json.ParseOptions(READ, unexpected_field_behavior="ignore")
            whole = arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
            table = arrow_json.read_json(pa.BufferReader(data), whole, options)
            times = table["at"].cast(pa.timestamp("ms", "UTC"))
            yield from table.set_column(0, "at", times).cast(ROWS).to_batches(10_000)

    def _values(self, own: Range) -> list[bytes]:
        consumer, values = consumer_of(self.servers), list[bytes]()
        consumer.assign([TopicPartition(self.topic, own.number, own.start)])
        while len(values) < own.stop - own.start:
            for message in consumer.consume(own.stop - own.start - len(values), timeout=1):
                assert message.error() is None, message.error()
                values.append(message.value() or b"")
        return values


@cache
def consumer_of(servers: str) -> Consumer:
    """Return this process's consumer."""
    return Consumer({
        "bootstrap.servers": servers, "group.id": "native", "enable.auto.commit": False,
        "fetch.wait.max.ms": 20, "log_level": 0,
    })  # fmt: skip


def main() -> int:
    """Run the query to the end of the topic, or of the time."""
    options = parse_options()
    # The native query's work is the JVM's own: it has Spark's usual compiler and collector.
    usual = {"spark.driver.extraJavaOptions": "", "spark.executor.extraJavaOptions": ""}
    spark = session("native-topic", 2, SparkSettings(conf=usual))
    spark.dataSource.register(NativeTopic)
    records = spark.readStream.format("native_topic")
    for name in ("servers", "topic", "partitions", "max_records"):
        records = records.option(name, getattr(options, name))
    grouped = (
        records.load().withWatermark("at", "2 minutes")
        .groupBy(f.window("at", "1 minute"), "customer")
        .agg(f.count("*").alias("n"), f.sum("amount").alias("total"), f.max("items").alias("most"))
    )  # fmt: skip
    writer = grouped.writeStream.outputMode("update").trigger(processingTime="200 milliseconds")
    query = writer.option("checkpointLocation", options.checkpoint).format("noop").start()
    (batches,) = finished([query], options.records, time.monotonic() + options.seconds)
    query.stop()
    print(json.dumps(batches))
    spark.stop()
    return 0


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.records.native_topic", description=__doc__)
    for name in ("--servers", "--topic", "--checkpoint"):
        parser.add_argument(name, required=True)
    for name, number in (
        ("--partitions", 8), ("--max-records", 25_000), ("--records", 200_000), ("--seconds", 600),
    ):  # fmt: skip
        parser.add_argument(name, type=int, default=number)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    # Workers of Spark import the data source by its module's name.
    sys.exit(import_module("benchmarks.records.native_topic").main())
