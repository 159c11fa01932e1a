"""Throughput and latency of key groupings on the real pipeline (paper 002, figures 14 and 15).

    python -m benchmarks.planners.grouping_throughput [--groupings consistent_grouping key
        partial_key shuffle] [--slow 0 1] [--capacity 400] [--bound 5] [--seconds 40] [--settle 40]

Weir's application on Spark with four nodes of an emulated capacity, of which `slow` have 30 % of
it, counts words of books in reading order. A rate is sustained if, after the first part of its
`seconds`, the p95 latency of the micro-batches is within `bound` seconds; the highest rate is found
by bisection. Key groupings follow each other while the query runs; backlogs are processed in
between without limits. As in the paper no key grouping is given the capacities of the nodes
(`weighted` is false); consistent grouping learns them from the utilisation that nodes report, for
`settle` seconds at half of the capacity. `consistent_grouping+` is given them, as by default.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import redis

from algorithms.lab.datasets import data_folder, read_columns
from algorithms.lab.partitioning.real_workloads import WORDS_FILE
from algorithms.partitioning.catalog import grouping_text
from benchmarks.application import Weir, wait
from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import (
    AssignStream,
    SetCapacity,
    SetNodeCount,
    SetSchema,
)
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery, SetKeyGrouping
from controlplane.wire.routing.route import task_ranges_of
from controlplane.wire.routing.table import RoutingDelta
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.redis_server import running_redis

NODES, TASKS_PER_NODE = 4, 2
QUERY, STREAM = 7, 1
SLOW: Final = 0.3
CLUSTER: Final = "words"
# Rates as parts of the capacity of all nodes.
RATES: Final = (0.24, 0.28, 0.32, 0.37, 0.43, 0.5, 0.58, 0.67, 0.75, 0.82, 0.88, 0.94)
STEP_S: Final = 0.25
SCHEMA: Final = StreamSchema(
    (ColumnSpec("read_at", "timestamp(ms)", nullable=False), ColumnSpec("word", "int64")),
    "read_at",
)


@dataclass
class Probe:
    """What a rate led to: p95 latencies (ms) of the micro-batches in its last part."""

    rate: float
    p95: list[float] = field(default_factory=list)

    @property
    def latency_s(self) -> float:
        """Return the p95 latency in seconds: the median over the micro-batches."""
        return float(np.median(self.p95)) / 1000 if self.p95 else float("inf")


@dataclass
class Words:
    """The application, with a producer of words."""

    application: Weir
    client: "redis.Redis"
    producer: Producer
    words: Any
    sent: int = 0
    version: int = 0

    def publish(self, *actions: Action) -> None:
        """Publish the next routing version."""
        self.version += 1
        publish(self.client, CLUSTER, RoutingDelta(self.version, actions))

    def send(self, rate: float, seconds: float) -> None:
        """Append words at a rate."""
        started, steps = time.monotonic(), 0
        first = self.sent
        while (elapsed := time.monotonic() - started) < seconds:
            steps += 1
            self._append(first + int(rate * elapsed) - self.sent)
            time.sleep(max(0.0, started + steps * STEP_S - time.monotonic()))

    def _append(self, count: int) -> None:
        if count <= 0:
            return
        times = pa.array([time.time_ns() // 1_000_000] * count, pa.int64())
        places = np.arange(self.sent, self.sent + count) % len(self.words)
        columns = [times.cast(SCHEMA.arrow.field("read_at").type), pa.array(self.words[places])]
        batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA.arrow)
        self.producer.append({STREAM: batch})
        self.sent += count

    def probe(self, rate: float, seconds: float) -> Probe:
        """Send at a rate, and return the latencies of the second part of the time."""
        self.send(rate, seconds / 2)
        since_ms = time.time_ns() // 1_000_000
        self.send(rate, seconds / 2)
        rows = [row for row in self.application.telemetry() if row["emitted_ms"] >= since_ms]
        return Probe(rate, [row["latency"]["p95"] for row in rows if row["latency"]["p95"]])

    def empty_backlogs(self, capacities: Sequence[float]) -> None:
        """Process all backlogs without limits, then limit the nodes again."""
        self.publish(*(SetCapacity(n, c, emulated=False) for n, c in enumerate(capacities)))
        wait(self.application, self._is_empty)
        self.publish(*(SetCapacity(n, c, emulated=True) for n, c in enumerate(capacities)))

    def _is_empty(self, rows: Sequence[Any]) -> bool:
        read = sum(row["in"] for row in rows) >= self.sent
        return read and rows[-1]["version"] == self.version and not rows[-1]["waiting"]


def main() -> None:
    options = parse_options()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        folder = Path(name)
        with running_redis(folder) as url, Weir(url, folder / "spark", CLUSTER, NODES, 1) as weir:
            client = redis.Redis.from_url(url)
            words = read_columns(data_folder() / WORDS_FILE, ("word_id",))["word_id"]
            schemas = {STREAM: SCHEMA}
            with Producer(url, CLUSTER, schemas=schemas) as producer:
                course = Words(weir, client, producer, words)
                course.publish(*_first_table())
                course.send(100, 1)
                wait(weir, lambda rows: sum(row["in"] for row in rows) >= course.sent)
                for slow in options.slow:
                    compare(course, slow, options)


def _first_table() -> list[Action]:
    text = QueryText({"n": "count(*)"}, key=["word"], window_s=10.0)
    ranges = task_ranges_of([task // TASKS_PER_NODE for task in range(NODES * TASKS_PER_NODE)])
    return [
        SetNodeCount(NODES),
        AssignStream(STREAM, 0),
        SetSchema(STREAM, SCHEMA),
        AddQuery(QUERY, 0, 0, (STREAM,), json.dumps(text.to_json()), ranges, "", NODES - 1),
    ]


def compare(course: Words, slow: int, options: Any) -> None:
    """Print the highest sustained rate of each key grouping, with so many slow nodes."""
    capacities = [options.capacity * (SLOW if node < slow else 1.0) for node in range(NODES)]
    total = sum(capacities)
    print(f"{slow} of {NODES} nodes at {SLOW:.0%}; all nodes: {total:,.0f} records/s", flush=True)
    highest: dict[str, float] = {}
    for name in options.groupings:
        weighted = name.endswith("+")
        text = grouping_text(name.rstrip("+"), {"weighted": weighted})
        course.publish(SetKeyGrouping(QUERY, text))
        course.empty_backlogs(capacities)
        if name.startswith("consistent"):
            course.send(total / 2, options.settle)
        highest[name] = search(course, name, capacities, options)
        against = f", {highest[name] / highest['key']:.2f} x key" if highest.get("key") else ""
        print(f"{name}: {highest[name]:,.0f} records/s{against}", flush=True)


def search(course: Words, name: str, capacities: Sequence[float], options: Any) -> float:
    """Return the highest of the rates that the key grouping sustains, 0 for none."""
    low, high = -1, len(RATES)
    while high - low > 1:
        middle = (low + high) // 2
        probe = course.probe(RATES[middle] * sum(capacities), options.seconds)
        sustained = probe.latency_s <= options.bound
        print(
            f"    {name} {probe.rate:7,.0f} records/s: p95 latency {probe.latency_s:6.2f} s,"
            f" {len(probe.p95)} micro-batches",
            flush=True,
        )
        low, high = (middle, high) if sustained else (low, middle)
        if not sustained:
            course.empty_backlogs(capacities)
    return RATES[low] * sum(capacities) if low >= 0 else 0.0


def parse_options(arguments: Sequence[str] | None = None) -> Any:
    groupings = ["key", "partial_key", "shuffle", "consistent_grouping", "consistent_grouping+"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groupings", nargs="+", default=groupings)
    parser.add_argument("--slow", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--capacity", type=float, default=400.0)
    parser.add_argument("--bound", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--settle", type=float, default=40.0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
