"""The data plane against what is demanded of it, one JSON object per measure.

    .venv/bin/python -m benchmarks.data_plane [--only delivered light half move kill memory]
        [--appends 150] [--seconds 30] [--tours 6] [--kills 3]

delivered: records/s handed to 8 nodes with 256 tasks, from a full log: of 256 queries with a task
each, and of 32 with eight. light: the micro-batch at 334 records/s, 4 nodes, 300 queries; memory:
resident memory of the same. half: from the append to the result at half of the rate that 8 nodes
just read. move: a task of a megabyte of state goes to another node and back. kill: the driver dies
by -9 under a real agent. Every measure has a Redis and a driver of its own.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import numpy as np
import pyarrow as pa
import redis

from benchmarks import placing_speed
from benchmarks.application import (
    EVENT_START_MS,
    STREAMS,
    Weir,
    append,
    batch_durations,
    block,
    small_queries,
    ticks,
    wait,
)
from benchmarks.control_plane import set_up_django
from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery, MoveTasks
from controlplane.wire.routing.table import RoutingDelta
from tests.support.driver import KeptDriver, Telemetry
from tests.support.redis_server import running_redis
from tests.support.texts import SUMMARY_TEXT
from workers.demo.recording import REPORT

CLUSTER: Final = "bench"
SPLITS: Final = 2
APPEND_RECORDS: Final = 20_000
HOUR_MS: Final = 3_600_000
# The task that moves: one row of state per car, 80 bytes each. What flows meanwhile has cars of
# these only, so its state does not grow.
MOVED: Final = 1
MOVED_STREAM: Final = 1
MOVED_ROWS: Final = 14_000
Report = dict[str, Any]
Options = argparse.Namespace


def main() -> None:
    options = parse_options()
    for name in options.only:
        with tempfile.TemporaryDirectory() as folder, running_redis(Path(folder)) as url:
            report = MEASURES[name](url, Path(folder), options)
            print(json.dumps({name: report}, indent=2), flush=True)


def publish_table(url: str, ops: Sequence[Action]) -> None:
    """Publish a routing table with all streams, their schemas and these queries."""
    splits = [AssignStream(stream, stream % SPLITS) for stream in range(1, STREAMS + 1)]
    schemas = [SetSchema(stream, REPORT) for stream in range(1, STREAMS + 1)]
    publish(redis.Redis.from_url(url), CLUSTER, RoutingDelta(1, (*splits, *schemas, *ops)))


def start_weir(url: str, folder: Path, ops: Sequence[Action], nodes: int, appends: int = 0) -> Weir:
    """Publish a routing table, fill the log, and return the application that will read both."""
    publish_table(url, ops)
    fill(url, appends)
    return Weir(url, folder, CLUSTER, nodes, SPLITS)


def split_queries(count: int, nodes: int) -> list[Action]:
    """Return queries over all streams with one task on each node, each with its own predicate."""
    streams = tuple(range(1, STREAMS + 1))
    task_ranges = tuple((node, node, node + 1) for node in range(nodes))
    return [
        AddQuery(query, 0, 0, streams, _split_text(query), task_ranges)
        for query in range(1, count + 1)
    ]


def _split_text(query: int) -> str:
    aggregates = {"n": "count(*)", "mean": "mean(speed)", "highest": "max(speed)"}
    where = f"speed > {query % 4}"
    return json.dumps(QueryText(aggregates, where=where, key=["stream", "car"]).to_json())


# ---- delivered records/s ---------------------------------------------------------------------


def delivered(url: str, folder: Path, options: Options) -> Report:
    """Measure both kinds of 256 tasks on 8 nodes."""
    every = {
        "256_queries_of_a_task": small_queries(256, 8),
        "32_queries_of_8_tasks": split_queries(32, 8),
    }
    report = {}
    for name, ops in every.items():
        redis.Redis.from_url(url).flushall()
        report[name] = full_log_rate(url, folder / name, ops, options.appends)
    return report


def full_log_rate(url: str, folder: Path, ops: Sequence[Action], appends: int) -> Report:
    """Return records/s over a log that was full before it was read."""
    with start_weir(url, folder, ops, nodes=8, appends=appends) as weir:
        rows = weir.batches_until(appends * APPEND_RECORDS, 120)
    return rates(rows)


def fill(url: str, appends: int) -> None:
    """Append drawn records, a minute of event time each time."""
    rng = np.random.default_rng(1)
    with Producer(url, CLUSTER) as producer:
        for step in range(appends):
            append(producer, rng, APPEND_RECORDS, EVENT_START_MS + step * 60_000)


def rates(rows: Telemetry) -> Report:
    """Return records/s from the end of the first batch on."""
    later = rows[1:]
    span = (rows[-1]["emitted_ms"] - rows[0]["emitted_ms"]) / 1000
    return {
        "batches": len(later),
        "read_records_per_s": round(sum(row["in"] for row in later) / span),
        "delivered_records_per_s": round(sum(row["delivered"] for row in later) / span),
    }


# ---- light load, and the memory it takes -------------------------------------------------------


def light(url: str, folder: Path, options: Options) -> Report:
    """Return the micro-batch and the latency at 334 records/s."""
    with start_weir(url, folder, small_queries(300, 4), nodes=4) as weir:
        seen = len(lightly_loaded(weir, url, batches=10, seconds=90))
        rows = lightly_loaded(weir, url, batches=10_000, seconds=options.seconds)[seen:]
        durations = batch_durations(weir.client, CLUSTER)[-len(rows) :]
        return {
            "batches": len(rows),
            "micro_batch_ms_p50": statistics.median(durations),
            "append_to_result_ms": latencies(rows),
            "node_busy_ms_p50": round(statistics.median(busy(rows)), 1),
            "memory_mb": weir.memory(),
        }


def memory(url: str, folder: Path, options: Options) -> Report:
    """Return the resident memory of the lightly loaded cluster after 4 times `seconds`."""
    with start_weir(url, folder, small_queries(440, 4), nodes=4) as weir:
        lightly_loaded(weir, url, batches=10_000, seconds=4 * options.seconds)
        return weir.memory()


def lightly_loaded(weir: Weir, url: str, batches: int, seconds: float) -> Telemetry:
    """Feed 334 records/s until there are so many batches, or for so long; return the telemetry."""
    rng = np.random.default_rng(1)
    with Producer(url, CLUSTER) as producer:
        for event_ms in ticks(seconds):
            append(producer, rng, 167, event_ms)
            if len(weir.telemetry()) >= batches:
                break
    return weir.telemetry()


def busy(rows: Telemetry) -> list[float]:
    """Return how long each node was busy in each batch, ms."""
    return [node["busy"] * 1000 for row in rows for node in row["nodes"]]


def latencies(rows: Telemetry) -> Report:
    """Return p50, and the p95 of the batches' p95: above the p95 of all records."""
    known = [row["latency"] for row in rows if row["latency"]]
    return {
        "p50": statistics.median(sample["p50"] for sample in known),
        "p95": round(float(np.percentile([sample["p95"] for sample in known], 95))),
    }


# ---- from the append to the result at half of the maximal rate ---------------------------------


def half(url: str, folder: Path, options: Options) -> Report:
    """Measure the maximal rate on a full log, then feed half of it to the same application."""
    appends, seconds = options.appends, options.seconds
    with start_weir(url, folder, small_queries(256, 8), nodes=8, appends=appends) as weir:
        most = rates(weir.batches_until(appends * APPEND_RECORDS, 120))
        seen = len(weir.telemetry())
        fed = paced(url, most["read_records_per_s"] / 2, seconds)
        weir.batches_until(appends * APPEND_RECORDS + fed, 60)
        # The first batches after a full log are not those of an even load.
        rows = weir.telemetry()[seen + 3 :]
    return {
        "maximal": most,
        "fed_records_per_s": round(fed / seconds),
        "batches": len(rows),
        "append_to_result_ms": latencies(rows),
    }


def paced(url: str, rate: float, seconds: float) -> int:
    """Append records at a rate, ten times a second; return how many."""
    rng, fed, started = np.random.default_rng(3), 0, time.monotonic()
    with Producer(url, CLUSTER) as producer:
        for event_ms in ticks(seconds, every=0.1):
            due = int(rate * (time.monotonic() - started + 0.1)) - fed
            if due > 0:
                fed += append(producer, rng, due, event_ms + 24 * HOUR_MS)
    return fed


# ---- live migration ------------------------------------------------------------------------------


def move(url: str, folder: Path, options: Options) -> Report:
    """Return in how many micro-batches a moving task gives no result, and one that stays."""
    aggregates = {"n": "count(*)", "mean": "mean(speed)", "highest": "max(speed)"}
    text = QueryText(aggregates, window_s=86_400.0, key=["car"])
    ops = [
        AddQuery(MOVED, 0, 0, (MOVED_STREAM,), json.dumps(text.to_json())),
        *(AddQuery(2 + node, 0, node, (MOVED_STREAM,), SUMMARY_TEXT) for node in range(4)),
    ]
    with start_weir(url, folder, ops, nodes=4) as weir, fed_evenly(url) as producer:
        wait_for_batches(weir, 5)
        producer.append({MOVED_STREAM: large_state()})
        tour(weir, options.tours)
        rows, durations = weir.telemetry(), batch_durations(weir.client, CLUSTER)
    return migration_report(weir, rows, durations)


def large_state() -> pa.RecordBatch:
    """Return records that each have a row of state of their own."""
    number = pa.array(np.arange(MOVED_ROWS), pa.int32())
    ts = pa.array(np.full(MOVED_ROWS, EVENT_START_MS)).cast(REPORT.arrow.field("ts").type)
    return pa.RecordBatch.from_arrays([ts, number, number, number, number], schema=REPORT.arrow)


@contextmanager
def fed_evenly(url: str) -> Iterator[Producer]:
    """Append 100 records of the stream every 50 ms from a thread, so that no batch is without."""
    stop, rng = Event(), np.random.default_rng(4)
    with Producer(url, CLUSTER) as producer, Producer(url, CLUSTER) as own:

        def feed() -> None:
            while not stop.wait(0.05):
                own.append({MOVED_STREAM: block(rng, 100, EVENT_START_MS)})

        thread = Thread(target=feed)
        thread.start()
        try:
            yield producer
        finally:
            stop.set()
            thread.join()


def tour(weir: Weir, moves: int) -> None:
    """Move the task from node to node so many times, five batches apart."""
    for step in range(moves):
        wait_for_batches(weir, 5)
        publish(
            weir.client,
            CLUSTER,
            RoutingDelta(2 + step, (MoveTasks(MOVED, (((step + 1) % 4, 0, 1),)),)),
        )
    wait_for_batches(weir, 5)


def wait_for_batches(weir: Weir, more: int) -> None:
    """Wait until so many more batches are done."""
    wanted = len(weir.telemetry()) + more
    wait(weir, lambda rows: len(rows) >= wanted)


def migration_report(weir: Weir, rows: Telemetry, durations: Sequence[int]) -> Report:
    """Compare the batches of moves with all others."""
    moved_in = [row["batch"] for row in rows if row["moves"]]
    around = {batch + step for batch in moved_in for step in (0, 1)}
    of_batch = dict(zip((row["batch"] for row in rows), durations, strict=False))
    settled = rows[5]["batch"]
    return {
        "moves": len(moved_in),
        "state_bytes": [move["bytes"] for row in rows for move in row["moves"]],
        "micro_batch_ms_p50": statistics.median(
            ms for batch, ms in of_batch.items() if batch not in around and batch > settled
        ),
        "micro_batch_ms_p50_moving": statistics.median(
            of_batch[b] for b in around if b in of_batch
        ),
    }


# ---- kill -9 -------------------------------------------------------------------------------------


def kill(url: str, folder: Path, options: Options) -> Report:
    """Return how long after the driver's death a batch with new records is done."""
    driver = KeptDriver(url, folder)
    # The agent keeps a driver of what the database knows.
    set_up_django(folder, url)
    assert placing_speed.fill_cluster(driver.cluster, STREAMS, 100) == set(range(1, STREAMS + 1))
    driver.start()
    try:
        with Producer(url, driver.cluster) as producer:
            feed = feeder(producer)
            wait(driver, lambda rows: feed() and len(rows) >= 5)
            back = [killed(driver, feed) for _ in range(options.kills)]
    finally:
        driver.end()
    return {
        "back_s": [round(seconds, 1) for seconds in back],
        "back_s_p50": round(statistics.median(back), 1),
    }


def feeder(producer: Producer) -> Callable[[], bool]:
    """Return what appends a few records each time it is called."""
    rng = np.random.default_rng(5)
    return lambda: bool(append(producer, rng, 50, EVENT_START_MS))


def killed(driver: KeptDriver, feed: Callable[[], bool]) -> float:
    """Kill the driver; return the seconds until a batch is done that another driver ran."""
    # The log holds what comes while nobody reads; a row of the old driver may still be on its way.
    died = time.time()
    driver.kill_driver()
    seen = len(driver.telemetry())
    with suppress(redis.ConnectionError):
        wait(driver, lambda rows: feed() and len(rows) > seen)
    back = float(driver.telemetry()[seen]["emitted_ms"]) / 1000 - died
    wanted = seen + 5
    wait(driver, lambda rows: feed() and len(rows) >= wanted)
    return back


MEASURES: Final[dict[str, Callable[[str, Path, Options], Report]]] = {
    "delivered": delivered,
    "light": light,
    "half": half,
    "move": move,
    "kill": kill,
    "memory": memory,
}


def parse_options(arguments: Sequence[str] | None = None) -> Options:
    parser = argparse.ArgumentParser(prog="benchmarks.data_plane", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(MEASURES), default=list(MEASURES))
    parser.add_argument("--appends", type=int, default=150, help="of 20,000 records to a full log")
    parser.add_argument("--seconds", type=float, default=30, help="at an even load")
    parser.add_argument("--tours", type=int, default=6, help="moves of the task")
    parser.add_argument("--kills", type=int, default=3)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
