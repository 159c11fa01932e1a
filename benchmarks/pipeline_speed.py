"""How fast the data plane is: micro-batch at light load, and records/s from a full log.

    .venv/bin/python -m benchmarks.pipeline_speed [--queries 300] [--nodes 4]
        [--seconds 30] [--appends 30]

Light load is 334 records/s over 80 streams (the demo at 60 times real time); the full log holds
three million records. Fixed seed; a Redis of its own.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import redis

from benchmarks.application import (
    EVENT_START_MS,
    PATIENCE_SECONDS,
    STREAMS,
    append,
    batch_durations,
    small_queries,
    ticks,
    wait,
)
from controlplane.wire.producer import Producer
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.table import RoutingDelta
from tests.support.driver import Driver
from tests.support.redis_server import running_redis
from workers.demo.recording import REPORT

CLUSTER = "bench"


def main() -> None:
    options = parse_options()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with running_redis(directory) as url:
            driver = Driver(url, directory, CLUSTER, nodes=options.nodes, splits=2)
            publish_queries(url, options.queries, options.nodes)
            try:
                print(json.dumps(measure(url, driver, options), indent=2))
            finally:
                driver.kill()


def measure(url: str, driver: Driver, options: argparse.Namespace) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    with Producer(url, CLUSTER) as producer:
        started = time.monotonic()
        driver.start()
        feed(producer, rng, driver, batches=10)
        ready = time.monotonic() - started
        seen = len(driver.telemetry())
        light_load(producer, rng, options.seconds)
        light = driver.telemetry()[seen:]
        durations = batch_durations(driver.client, CLUSTER)[-len(light) :]
        return {
            "first_ten_batches_s": round(ready, 1),
            "light_batch_ms_p50": statistics.median(durations),
            "light_latency_ms_p50": statistics.median(r["latency"]["p50"] for r in light),
            "light_latency_ms_p95": float(np.percentile([r["latency"]["p95"] for r in light], 95)),
            **full_log(producer, rng, driver, options.appends),
        }


def full_log(
    producer: Producer, rng: np.random.Generator, driver: Driver, appends: int
) -> dict[str, Any]:
    """Fill the log faster than it is read, then measure between the first and last full batch."""
    seen = len(driver.telemetry())
    records = 0
    for step in range(appends):
        records += append(producer, rng, 100_000, EVENT_START_MS + 86_400_000 + step * 60_000)
    wait(driver, lambda rows: sum(row["in"] for row in rows[seen:]) >= records)
    rows = [row for row in driver.telemetry()[seen:] if row["in"] >= 100_000]
    span = (rows[-1]["emitted_ms"] - rows[0]["emitted_ms"]) / 1000
    return {
        "full_batches": len(rows) - 1,
        "read_records_per_s": round(sum(r["in"] for r in rows[1:]) / span),
        "delivered_records_per_s": round(sum(r["delivered"] for r in rows[1:]) / span),
    }


def publish_queries(url: str, queries: int, nodes: int) -> None:
    every = range(1, STREAMS + 1)
    splits: list[Action] = [AssignStream(stream, stream % 2) for stream in every]
    splits += [SetSchema(stream, REPORT) for stream in every]
    ops = small_queries(queries, nodes)
    publish(redis.Redis.from_url(url), CLUSTER, RoutingDelta(1, (*splits, *ops)))


def light_load(producer: Producer, rng: np.random.Generator, seconds: int) -> None:
    for event_ms in ticks(seconds):
        append(producer, rng, 167, event_ms + 3_600_000)


def feed(producer: Producer, rng: np.random.Generator, driver: Driver, batches: int) -> None:
    """Append until so many micro-batches are done. Raises `TimeoutError`."""
    for event_ms in ticks(PATIENCE_SECONDS):
        append(producer, rng, 167, event_ms)
        if len(driver.telemetry()) >= batches:
            return
    raise TimeoutError(f"no {batches} batches:\n{driver.log.read_text()[-4000:]}")


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=30, help="of light load")
    parser.add_argument("--appends", type=int, default=30, help="of 100,000 records to a full log")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
