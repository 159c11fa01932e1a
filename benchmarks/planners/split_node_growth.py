"""Latency and split nodes on the real pipeline while the load grows and falls (paper 001, fig. 14).

    python -m benchmarks.planners.split_node_growth [--strategies drf_m ard static] [--seconds 600]
        [--streams 200] [--capacity 200] [--lowest 4] [--highest 32] [--static-nodes N]

For each strategy a Weir of its own, with the commands of `make run`: agent, driver on Spark, relay,
Celery worker and beat on default settings; only the policy's strategy and the limit of split nodes
are set. All streams rise and fall evenly from `lowest` to `highest` split nodes' worth of records;
their average, minimum, maximum and period are declared. Split nodes are limited to `capacity`.
`static` redirects nothing: its split nodes are as many as DRF-M had on average, unless given.
"""

import argparse
import multiprocessing
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa

from algorithms.vocabulary import Floats
from benchmarks.control_plane import fresh_weir, running_services, wait_until

SERVICES: Final = ("web", "worker", "relay", "agent", "beat")
STATIC: Final = "static"
STEP_S: Final = 0.5
BOUND_MS: Final = 5_000.0
SCHEMA: Final = {
    "columns": [
        {"name": "read_at", "type": "timestamp(ms)", "nullable": False},
        {"name": "value", "type": "int64"},
    ],
    "event_time": "read_at",
}
# Several split nodes are added within one period at the steepest rise.
MOST_NODES: Final = 64
START_S: Final = 120.0


@dataclass(frozen=True)
class Load:
    """The load: s streams with these mean rates, rising and falling evenly in `seconds`."""

    means: Floats
    lowest: float
    highest: float
    seconds: float

    @classmethod
    def of(cls, options: Any) -> "Load":
        """Return the load of the options; the mean rates differ by a factor of up to three."""
        weights = np.random.default_rng(options.seed).uniform(1.0, 3.0, options.streams)
        return cls(
            weights / weights.sum() * options.capacity, options.lowest, options.highest,
            options.seconds,
        )  # fmt: skip

    def rates(self, elapsed: float) -> Floats:
        """Return the records/s of each stream."""
        share = 1 - abs(1 - 2 * (elapsed / self.seconds % 1.0))
        rates: Floats = self.means * (self.lowest + (self.highest - self.lowest) * share)
        return rates

    def characteristics(self, place: int) -> dict[str, Any]:
        """Return what is declared of a stream."""
        low, high = self.means[place] * self.lowest, self.means[place] * self.highest
        return {
            "average": (low + high) / 2, "minimum": low, "maximum": high,
            "period_s": float(self.seconds), "transition": "trend",
        }  # fmt: skip


@dataclass(frozen=True)
class Course:
    """What a run measured, by second: p95 latency (ms) and number of open split nodes."""

    p95: Floats
    nodes: Floats
    redirected: int
    sent: int
    counted: int

    def summary(self) -> str:
        """Return the course as text."""
        over = int((self.p95 > BOUND_MS).sum())
        return (
            f"{over:4d} of {len(self.p95)} s above {BOUND_MS / 1000:g} s;"
            f" p95 latency: median {np.median(self.p95) / 1000:.2f} s,"
            f" highest {self.p95.max() / 1000:.2f} s; split nodes: mean {self.nodes.mean():.1f},"
            f" {self.nodes.min():.0f} to {self.nodes.max():.0f};"
            f" {self.redirected} redirections; {self.sent:,} records sent, {self.counted:,} counted"
        )


def main() -> None:
    options = parse_options()
    # Django is set up once in a process, so each strategy has its own.
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawned, max_tasks_per_child=1) as processes:
        for strategy in options.strategies:
            course = processes.submit(measure, strategy, options).result()
            print(f"{strategy:8s} {course.summary()}", flush=True)
            print_course(course)
            if strategy == "drf_m" and not options.static_nodes:
                options.static_nodes = round(float(course.nodes.mean()))


def measure(strategy: str, options: Any) -> Course:
    """Return the course under a strategy."""
    load = Load.of(options)
    static = options.static_nodes or round((options.lowest + options.highest) / 2)
    first = static if strategy == STATIC else options.lowest + 2
    return run(strategy, load, options.capacity, int(first))


def run(strategy: str, load: Load, capacity: float, nodes: int) -> Course:
    """Return the course under a strategy; the cluster starts with so many split nodes."""
    with fresh_weir() as data:
        cluster, streams = _cluster(strategy, load, capacity, nodes)
        with running_services(data, SERVICES):
            _start(cluster, streams[0])
            return _drive(cluster, streams, load)


def _cluster(strategy: str, load: Load, capacity: float, nodes: int) -> tuple[Any, Sequence[int]]:
    """Create the cluster with its streams, a query over all of them, and the policy."""
    from controlplane.models import Cluster, Node, Policy  # noqa: PLC0415 - needs Django
    from controlplane.queries.spec import QuerySpec  # noqa: PLC0415
    from controlplane.topology import queries, split_nodes, streams  # noqa: PLC0415
    from controlplane.wire.query_text import QueryText  # noqa: PLC0415

    actor = _operator()
    cluster = Cluster.objects.create(slug="growth", name="growth", slots=2, splits=nodes)
    Node.objects.bulk_create(
        Node(cluster=cluster, index=index, name=f"node {index}", capacity=1e6) for index in (0, 1)
    )
    settings = {"split_nodes": MOST_NODES}
    static = {"redirects": "off"}
    chosen = static if strategy == STATIC else {"redirect_strategy": strategy}
    Policy.objects.create(cluster=cluster, settings=settings | chosen)
    mean = (load.lowest + load.highest) / 2
    specs = [
        streams.StreamSpec(
            f"meter-{place}", schema=SCHEMA, declared_rate=float(load.means[place] * mean),
            characteristics=load.characteristics(place),
        )
        for place in range(len(load.means))
    ]  # fmt: skip
    rows = streams.register(actor, cluster, specs)
    split_nodes.set_split_capacity(actor, cluster, capacity, emulated=True)
    text = QueryText({"records": "count(*)"}, window_s=3_600.0, key=["stream"])
    names = [spec.name for spec in specs]
    queries.submit_many(actor, cluster, [QuerySpec("all", names, text=text, tasks=2)])
    return cluster, [row.pk for row in rows]


def _start(cluster: Any, stream: int) -> None:
    """Start the application, and wait until it has read a record."""
    from django.conf import settings  # noqa: PLC0415

    from controlplane.clusters import changes  # noqa: PLC0415
    from controlplane.wire.producer import Producer  # noqa: PLC0415

    changes.start(_operator(), cluster)
    with Producer(settings.REDIS_URL, cluster.slug) as producer:
        producer.append({stream: _batch(datetime.now(UTC), 1)})
    wait_until(lambda: bool(_row_count(cluster)), START_S)


def _operator() -> Any:
    from controlplane.access.roles import OPERATOR, Actor  # noqa: PLC0415
    from controlplane.clusters import demo  # noqa: PLC0415

    demo.ensure_roles()
    return Actor(demo.ensure_user("benchmark", OPERATOR, None))


def _row_count(cluster: Any) -> int:
    return len(_rows(cluster, 1))


def _rows(cluster: Any, count: int) -> list[dict[str, Any]]:
    from controlplane.connections import redis_client  # noqa: PLC0415
    from workers.pipeline.reports.telemetry_row import newest_telemetry  # noqa: PLC0415

    return newest_telemetry(redis_client(), cluster.slug, count)


def _drive(cluster: Any, streams: Sequence[int], load: Load) -> Course:
    """Send the load, wait until all of it is read, and return the course."""
    from django.conf import settings  # noqa: PLC0415

    from controlplane.models import Redirection  # noqa: PLC0415
    from controlplane.wire.producer import Producer  # noqa: PLC0415

    sender = Sender(streams, load)
    before = len(_rows(cluster, 100_000))
    with Producer(settings.REDIS_URL, cluster.slug) as producer:
        started = time.time()
        while (elapsed := time.time() - started) < load.seconds:
            sender.send(producer, elapsed)
            time.sleep(max(0.0, started + sender.steps * STEP_S - time.time()))
    wait_until(lambda: _is_read(cluster, sender.sent, before), load.seconds)
    rows = _rows(cluster, 100_000)[::-1][before:]
    p95, nodes = _by_second(rows, started, load.seconds)
    redirected = Redirection.objects.filter(stream__cluster=cluster).count()
    counted = sum(row["in"] for row in rows)
    return Course(p95, nodes, redirected, sender.sent, counted)


def _is_read(cluster: Any, sent: int, before: int) -> bool:
    time.sleep(1.0)
    rows = _rows(cluster, 100_000)[::-1][before:]
    return bool(sum(row["in"] for row in rows) >= sent)


class Sender:
    """Sends whole records of fractional rates; the remainders follow later."""

    def __init__(self, streams: Sequence[int], load: Load) -> None:
        self._streams, self._load = streams, load
        self._owed = np.zeros(len(streams))
        self.steps = 0
        self.sent = 0

    def send(self, producer: Any, elapsed: float) -> None:
        """Append the records of one step, each stream at a position of its own step."""
        self.steps += 1
        self._owed += self._load.rates(elapsed) * STEP_S
        counts = np.floor(self._owed).astype(np.int64)
        self._owed -= counts
        now = datetime.now(UTC)
        chunks: list[Mapping[int, pa.RecordBatch]] = [
            {stream: _batch(now, count)}
            for stream, count in zip(self._streams, counts.tolist(), strict=True)
            if count
        ]
        for chunk in chunks:
            producer.append(chunk)
        self.sent += int(counts.sum())


def _batch(now: datetime, count: int) -> pa.RecordBatch:
    times = pa.array([now] * count, pa.timestamp("ms", tz="UTC"))
    return pa.record_batch([times, pa.array(range(count), pa.int64())], ["read_at", "value"])


def _by_second(
    rows: Sequence[Mapping[str, Any]], started: float, seconds: float
) -> tuple[Floats, Floats]:
    """Return p95 latency and open split nodes of each second: those of its next batch."""
    ends = np.array([row["emitted_ms"] / 1000 for row in rows])
    wanted = started + np.arange(int(seconds)) + 1.0
    places = np.minimum(np.searchsorted(ends, wanted), len(rows) - 1)
    p95 = np.array([row["latency"]["p95"] or 0.0 for row in rows], np.float64)
    nodes = np.array([len(row["splits"]) for row in rows], np.float64)
    return p95[places], nodes[places]


def print_course(course: Course) -> None:
    """Print p95 latency and split nodes every half minute."""
    for second in range(0, len(course.p95), 30):
        part = slice(second, second + 30)
        print(
            f"    {second:4d} s: p95 {course.p95[part].max() / 1000:7.2f} s,"
            f" {course.nodes[part].mean():5.1f} split nodes"
        )


def parse_options(arguments: Sequence[str] | None = None) -> Any:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strategies", nargs="+", default=["drf_m", "ard", STATIC])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--capacity", type=float, default=200.0)
    parser.add_argument("--lowest", type=float, default=4.0)
    parser.add_argument("--highest", type=float, default=32.0)
    parser.add_argument("--static-nodes", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
