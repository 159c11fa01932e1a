"""A topic read in place against Weir's own log: records/s from a full topic, one query by key.

    .venv/bin/python -m benchmarks.records.topic_speed [--records 200000] [--partitions 8]
        [--runs 3] [--seconds 600] [--max-records 25000]

The same records as JSON of about 150 bytes, as Avro with a schema registry, as blocks of Weir's
log, and as JSON in a native query of Spark (`native_topic`); count, sum and maximum by key and
minute on two nodes, at two split nodes. Each run has a pipeline of its own, and counts from the end
of batch `--warm`. The broker (Tansu) and the producer that filled it share the machine. Processor
time is that of the application with its workers, so it depends less on other work on the machine
than records/s do; the last column is that of a consumer that only fetches the messages.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import redis
from confluent_kafka import Producer as KafkaProducer

from benchmarks import cab_log
from benchmarks.application import PATIENCE_SECONDS, Weir, wait
from benchmarks.native_compare import batch_end
from controlplane.wire.network.destinations import LIST
from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import (
    AssignStream,
    SetSchema,
    SetSource,
    SetSplitCount,
)
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta
from controlplane.wire.schema import ColumnSpec, StreamSchema
from controlplane.wire.topics.clients import consumer_of, messages_between
from controlplane.wire.topics.definitions import Definition, avro_body
from controlplane.wire.topics.places import Place
from controlplane.wire.topics.registry import with_prefix
from controlplane.wire.topics.source import TopicSource
from tests.support.redis_server import running_redis
from tests.support.registry import running_registry
from tests.support.topics import create_topic, running_broker

STREAM, NODES, SPLITS = 1, 2, 2
START_MS: Final = 1_772_359_200_000
BLOCK: Final = 1_000
ORDERS: Final = StreamSchema(
    (
        ColumnSpec("at", "timestamp(ms)", nullable=False),
        ColumnSpec("customer", "string"),
        ColumnSpec("amount", "float64"),
        ColumnSpec("items", "int32"),
        ColumnSpec("note", "string"),
    ),
    "at",
)
QUERY: Final = QueryText(
    {"n": "count(*)", "total": "sum(amount)", "most": "max(items)"}, key=["customer"], window_s=60.0
)
_TYPES: Final = {
    "at": {"type": "long", "logicalType": "timestamp-millis"}, "customer": "string",
    "amount": "double", "items": "int", "note": "string",
}  # fmt: skip
AVRO: Final = json.dumps({"type": "record", "name": "Order", "fields": [
    {"name": name, "type": kind} for name, kind in _TYPES.items()
]})  # fmt: skip
Encode = Callable[[dict[str, Any]], bytes]


class TopicRate(NamedTuple):
    """Records per second, and the processor time of a record in µs."""

    records_per_s: float
    processor_us: float


class RunPlace(NamedTuple):
    """The cluster of a run: its Redis, its folder, its name."""

    url: str
    folder: Path
    cluster: str
    query: int


def main() -> None:
    options = parse_options()
    # Neither Redis nor the broker is a destination of a site.
    os.environ.pop(LIST, None)
    rates = {kind: list[TopicRate]() for kind in ("log", "json", "avro", "native")}
    with (
        tempfile.TemporaryDirectory() as name,
        running_redis(Path(name)) as url,
        running_registry() as registry,
        running_broker() as broker,
    ):
        number, definition = registry.add("avro-value", AVRO), Definition((AVRO,))
        plain = TopicSource(broker, "json")
        sources = {
            "json": plain,
            "avro": replace(plain, topic="avro", format="avro", registry=registry.url),
        }
        encoders: dict[str, Encode] = {
            "json": lambda row: json.dumps(row).encode(),
            "avro": lambda row: with_prefix(number, avro_body(definition, row)),
        }
        sizes = {
            kind: fill_topic(broker, source, encoders[kind], options)
            for kind, source in sources.items()
        }
        fetched = {kind: fetch_us(source, options) for kind, source in sources.items()}
        for run in range(options.runs):
            for kind, source in {"log": None, **sources}.items():
                place = RunPlace(
                    url, Path(name), f"{kind}-{run}", 1 + sum(map(len, rates.values()))
                )
                rates[kind].append(measured(place, source, options))
            rates["native"].append(native_rate(plain, Path(name) / f"native-{run}", options))
    print(table(rates, sizes, fetched))


def drawn(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the records; a second of event time has a thousand."""
    rng = np.random.default_rng(1)
    customers = rng.zipf(1.3, options.records) % 5_000
    amounts, items = rng.integers(0, 99_999, options.records), rng.integers(1, 9, options.records)
    for index, values in enumerate(zip(customers.tolist(), amounts.tolist(), items.tolist(),
                                       strict=True)):  # fmt: skip
        customer, amount, count = values
        yield {
            "at": START_MS + index, "customer": f"c-{customer:05}", "amount": amount / 100,
            "items": count, "note": f"order {index:09} of the northern shop, by mail, paid by card",
        }  # fmt: skip


def fill_topic(
    broker: str, source: TopicSource, encode: Encode, options: argparse.Namespace
) -> float:
    """Send the records to partitions in turn; return the mean size of a message."""
    create_topic(broker, source.topic, options.partitions)
    producer = KafkaProducer({"bootstrap.servers": broker, "log_level": 0, "linger.ms": 50})
    size = 0
    for index, row in enumerate(drawn(options)):
        value = encode(row)
        size += len(value)
        send(producer, source.topic, value, index % options.partitions)
    assert producer.flush(600) == 0
    # The broker lists the first offset of the newest batch as the end: a batch behind the records.
    for partition in range(options.partitions):
        send(producer, source.topic, value, partition)
    assert producer.flush(60) == 0
    return size / int(options.records)


def send(producer: KafkaProducer, topic: str, value: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(topic, value, partition=partition, timestamp=START_MS)
            return
        except BufferError:
            producer.poll(0.1)


def fetch_us(source: TopicSource, options: argparse.Namespace) -> float:
    """Return the processor time in which a consumer only fetches a message, µs."""
    each = options.records // options.partitions
    places = [Place(source.topic, number) for number in range(options.partitions)]
    consumer, began = consumer_of(source, "bench"), time.process_time()
    count = len(messages_between(consumer, dict.fromkeys(places, (0, each)), 1 << 40))
    used = time.process_time() - began
    consumer.close()
    return 1e6 * used / max(1, count)


def measured(place: RunPlace, source: TopicSource | None, options: argparse.Namespace) -> TopicRate:
    """Return how fast a pipeline reads all from a topic, or from the log, once it is warm."""
    if source is None:
        fill_log(place, options)
    publish_query(place, source)
    folder = place.folder / place.cluster
    with Weir(place.url, folder, place.cluster, NODES, SPLITS, options.max_records) as weir:
        wait(weir, lambda rows: len(batches_of(rows)) >= options.warm, options.seconds)
        began, used = batches_of(weir.telemetry()), processor_s(weir)
        wait(weir, lambda rows: sum(row["in"] for row in rows) >= options.records, options.seconds)
        ended, used = batches_of(weir.telemetry()), processor_s(weir) - used
    cab_log.drop_cluster(redis.Redis.from_url(place.url), place.cluster)
    later = ended[len(began) :]
    assert later, "all was read by the first batches: give more records"
    count = sum(records for _, records in later)
    return TopicRate(1000 * count / (later[-1][0] - began[-1][0]), 1e6 * used / count)


def native_rate(source: TopicSource, folder: Path, options: argparse.Namespace) -> TopicRate:
    """Return how fast a native query of Spark reads the same messages, once it is warm."""
    settings = {
        "servers": source.servers, "topic": source.topic, "checkpoint": folder,
        "partitions": options.partitions, "max-records": options.max_records,
        "records": options.records, "seconds": round(options.seconds),
    }  # fmt: skip
    command = [sys.executable, "-m", "benchmarks.records.native_topic"]
    command += [part for name, value in settings.items() for part in (f"--{name}", str(value))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    batches = json.loads(done.stdout.splitlines()[-1])
    ends = [(batch_end(batch), batch["numInputRows"]) for batch in batches if batch["numInputRows"]]
    began, later = ends[options.warm - 1][0], ends[options.warm :]
    assert later, "all was read by the first batches: give more records"
    return TopicRate(sum(count for _, count in later) / (later[-1][0] - began), math.nan)


def batches_of(rows: Sequence[Any]) -> list[tuple[int, int]]:
    """Return end (ms) and records of the batches with records."""
    return [(row["emitted_ms"], row["in"]) for row in rows if row["in"]]


def processor_s(weir: Weir) -> float:
    """Return the processor time of the application with its workers so far, s."""
    assert weir.process is not None
    root = psutil.Process(weir.process.pid)
    every = [process.cpu_times() for process in (root, *root.children(recursive=True))]
    return float(sum(sum(times[:4]) for times in every))


def fill_log(place: RunPlace, options: argparse.Namespace) -> None:
    rows: list[dict[str, Any]] = []
    limit = options.records + 1
    with Producer(place.url, place.cluster, limit=limit, schemas={STREAM: ORDERS}) as producer:
        for row in drawn(options):
            rows.append(row)
            if len(rows) == BLOCK:
                append(producer, rows)
                rows = []
        append(producer, rows)


def append(producer: Producer, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        arrays = [
            pa.array([row[field.name] for row in rows]).cast(field.type) for field in ORDERS.arrow
        ]
        producer.append({STREAM: pa.RecordBatch.from_arrays(arrays, schema=ORDERS.arrow)})


def publish_query(place: RunPlace, source: TopicSource | None) -> None:
    ranges = tuple((node, node, node + 1) for node in range(NODES))
    actions: list[Action] = [SetSplitCount(SPLITS), AssignStream(STREAM, 0)]
    actions.append(SetSchema(STREAM, ORDERS))
    actions += [] if source is None else [SetSource(STREAM, source)]
    actions.append(AddQuery(place.query, 0, 0, (STREAM,), json.dumps(QUERY.to_json()), ranges))
    publish(redis.Redis.from_url(place.url), place.cluster, RoutingDelta(1, tuple(actions)))


def table(
    rates: dict[str, list[TopicRate]], sizes: dict[str, float], fetched: dict[str, float]
) -> str:
    """Return the medians as a Markdown table."""
    middles = {
        name: TopicRate(*(statistics.median(values) for values in zip(*own, strict=True)))
        for name, own in rates.items()
    }
    log = middles["log"]
    lines = [
        "| source | records/s | runs | against the log | processor, µs/record | log / it "
        "| bytes | fetch alone, µs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, middle in middles.items():
        runs = ", ".join(f"{rate.records_per_s:,.0f}" for rate in rates[name])
        lines.append(
            f"| {name} | {middle.records_per_s:,.0f} | {runs} "
            f"| {middle.records_per_s / log.records_per_s:.2f} | {middle.processor_us:.1f} "
            f"| {log.processor_us / middle.processor_us:.2f} | {sizes.get(name, 0):.0f} "
            f"| {fetched.get(name, 0):.1f} |"
        )
    return "\n".join(lines)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.records.topic_speed", description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--warm", type=int, default=2, help="first batches that do not count")
    parser.add_argument("--max-records", type=int, default=25_000, help="of a batch")
    parser.add_argument("--seconds", type=float, default=PATIENCE_SECONDS, help="at most, per run")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
