"""One course: a driver of its own, records at a steady rate, a change of nodes in the middle."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from algorithms.migration.problem import MigrationProblem
from algorithms.migration.single_step import SingleStep
from controlplane.child_processes.start import spawn
from controlplane.processes.runtime.java import find_java
from controlplane.processes.runtime.redis_server import answers, find_server
from controlplane.wire import keys, measures
from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from controlplane.wire.redis_clients import connect_patiently
from controlplane.wire.results.database import ConnectedDatabase
from controlplane.wire.results.tables import create_tables
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema
from controlplane.wire.routing.publication import publish
from controlplane.wire.routing.query_actions import AddQuery, MoveTasks
from controlplane.wire.routing.route import TaskRange, task_ranges_of
from controlplane.wire.routing.table import RoutingDelta
from controlplane.wire.schema import ColumnSpec, StreamSchema
from workers.agent.class_archive import java_environment
from workers.agent.driver import Driver, DriverSpec, Site, pipeline_command

SCHEMA: Final = StreamSchema(
    (
        ColumnSpec("at", "timestamp(ms)", nullable=False),
        ColumnSpec("key", "int32", nullable=False),
        ColumnSpec("value", "int32"),
    ),
    event_time="at",
)
STREAMS: Final = 8
QUERY: Final = 1
TEXT: Final = QueryText(
    {"n": "count(*)", "mean": "mean(value)", "high": "max(value)"}, key=["key"], window_s=3_600.0
)
_FIRST_MS: Final = 1_600_000_000_000
CLUSTER: Final = "figure15"
START_S: Final = 240.0
# The unmeasured begin of every trial: workers start, code is compiled.
WARM_UP_S: Final = 5.0
ReportProgress = Callable[[float], None]
Row = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """The parameters of figure 15 (`algorithms.lab.migration.experiments.live`), and its series."""

    minutes: int
    minute_s: float
    present: int
    nodes: int
    tasks: int
    keys: int
    rate: float
    tau: float
    seed: int
    series: str

    @property
    def most_nodes(self) -> int:
        """Return how many nodes the application has at most."""
        return max(self.present, self.nodes)

    @property
    def changes_at_s(self) -> float:
        """Return when the nodes change: at the beginning of the middle minute."""
        return (self.minutes // 2) * self.minute_s

    def owners(self) -> list[int]:
        """Return the node of each task at first: intervals of equal length."""
        parts = np.array_split(np.arange(self.tasks), self.present)
        return [node for node, part in enumerate(parts) for _ in part]

    def beginning(self) -> list[Action]:
        """Return the first routing table."""
        streams = tuple(range(1, STREAMS + 1))
        task_ranges = task_ranges_of(self.owners())
        text = json.dumps(TEXT.to_json())
        query = AddQuery(QUERY, 0, 0, streams, text, task_ranges)
        assigned = [AssignStream(stream, stream % 2) for stream in streams]
        return [*assigned, *(SetSchema(stream, SCHEMA) for stream in streams), query]

    def change(self, state: dict[int, int]) -> MoveTasks:
        """Return the migration of fewest bytes (paper 004, section 4.1); `state`: bytes by task."""
        sizes = np.array([max(1, state.get(task, 1)) for task in range(self.tasks)], np.float64)
        owners = np.array(self.owners())
        problem = MigrationProblem.of_owner(
            np.ones(self.tasks), sizes, owners, self.present, self.nodes, self.tau
        )
        after = SingleStep().solve(problem).assignment
        moves: list[TaskRange] = [
            (int(after[task]), task, task + 1)
            for task in range(self.tasks)
            if after[task] != owners[task]
        ]
        return MoveTasks(QUERY, tuple(moves))

    def records(self) -> Iterator[dict[int, pa.RecordBatch]]:
        """Yield what comes in each tenth of a second, by stream; keys are drawn from a Zipf law."""
        rng = np.random.default_rng(self.seed)
        share = 1 / np.arange(1, self.keys + 1) ** 0.8
        edges = np.cumsum(share / share.sum())
        count = max(STREAMS, round(self.rate / 10))
        tick = 0
        while True:
            cars = np.searchsorted(edges, rng.random(count)).astype(np.int32)
            yield dict(enumerate(self._blocks(rng, cars, tick), start=1))
            tick += 1

    def _blocks(self, rng: np.random.Generator, cars: Any, tick: int) -> Iterator[pa.RecordBatch]:
        for stream_cars in np.array_split(cars, STREAMS):
            size = len(stream_cars)
            times = np.full(size, _FIRST_MS + tick * 100, "datetime64[ms]")
            columns: list[Any] = [times, stream_cars, rng.integers(0, 3_000, size)]
            arrays = [pa.array(c).cast(f.type) for c, f in zip(columns, SCHEMA.arrow, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA.arrow)


class CourseFailed(Exception):
    """The application did not reach the awaited state in time."""


@contextmanager
def own_redis(folder: Path) -> Iterator[str]:
    """Yield the URL of a Redis of this course alone. Raises `CheckFailed`."""
    own = find_server(os.environ, folder, lambda _: None)
    server = spawn(own.command(), dict(os.environ), folder / "redis.log")
    try:
        _until(lambda: answers(own.url), 20, "an answer of Redis")
        yield own.url
    finally:
        server.terminate()
        server.wait(timeout=20)


def _until(done: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise CourseFailed(f"{what} did not come within {seconds:.0f} s")
        time.sleep(0.1)


@dataclass
class Course:
    """A running course."""

    request: Request
    folder: Path
    redis_url: str
    report: ReportProgress

    def __post_init__(self) -> None:
        self.client = connect_patiently(self.redis_url)
        java = find_java(os.environ, self.folder / "java", lambda _: None)
        url = f"sqlite:///{self.folder / 'results.sqlite3'}"
        results = ConnectedDatabase(url)
        results.run(lambda cursor: create_tables(cursor, is_postgres=False))
        results.close()
        self.site = Site(
            self.folder, self.redis_url, java_environment(java.home), results_url=lambda _: url
        )
        self.spec = DriverSpec(CLUSTER, self.request.most_nodes, 2, trigger_ms=200)
        self.version = 0

    def run(self) -> list[Row]:
        """Return the measures of each minute. Raises `CourseFailed`."""
        self._publish(self.request.beginning())
        driver = Driver(self.spec, self.site, pipeline_command)
        stop = threading.Event()
        feeder = threading.Thread(target=self._feed, args=(stop,), daemon=True)
        try:
            feeder.start()
            _until(lambda: bool(self._rows()), START_S, f"a first batch ({driver.last_error()})")
            self._let_pass(WARM_UP_S, 0.0)
            started = time.time()
            self._let_pass(self.request.changes_at_s, started)
            driver = self._change(driver)
            self._let_pass(self.request.minutes * self.request.minute_s, started)
            stop.set()
            feeder.join()
            self._wait_for_the_rest()
            return by_minute(self.request, self._rows(), started)
        finally:
            stop.set()
            driver.kill()

    def _change(self, driver: Driver) -> Driver:
        """Move the tasks, live or around a restart; return the driver that continues."""
        nodes = range(self.request.most_nodes)
        tasks = measures.read_tasks(self.client, CLUSTER, nodes)
        state = {task.task: task.state_bytes for task in tasks if task.query == QUERY}
        change = self.request.change(state)
        if self.request.series == "live":
            self._publish([change])
            return driver
        driver.request_stop()
        _until(lambda: driver.exit_code() is not None, 60, "the end of the driver")
        driver.kill()
        self._publish([change])
        return Driver(self.spec, self.site, pipeline_command)

    def _publish(self, ops: list[Action]) -> None:
        self.version += 1
        publish(self.client, CLUSTER, RoutingDelta(self.version, tuple(ops)))

    def _feed(self, stop: threading.Event) -> None:
        """Append a tenth of a second's records every tenth of a second, until `stop` is set."""
        due = time.monotonic()
        with Producer(self.redis_url, CLUSTER) as producer:
            for batch in self.request.records():
                if stop.wait(max(0.0, due - time.monotonic())):
                    return
                producer.append(batch)
                due += 0.1

    def _let_pass(self, seconds: float, started: float) -> None:
        """Wait until `seconds` after the start (0: now), and report the progress."""
        start = started or time.time()
        whole = self.request.minutes * self.request.minute_s
        while (passed := time.time() - start) < seconds:
            self.report(min(0.99, passed / whole) if started else 0.0)
            time.sleep(min(0.5, seconds - passed))

    def _wait_for_the_rest(self) -> None:
        result = cast("list[Any]", self.client.xrevrange(keys.index_key(CLUSTER), count=1))
        last = result[0][0].decode()
        _until(lambda: self._rows()[-1]["end"] == last, START_S, "the last record")

    def _rows(self) -> list[Row]:
        result = cast("list[Any]", self.client.xrange(keys.telemetry_key(CLUSTER)))
        return [json.loads(fields[b"t"]) for _, fields in result]


def by_minute(request: Request, rows: list[Row], started: float) -> list[Row]:
    """Return the measures of each minute, by when results came out.

    The response time of a minute without a result is None.
    """
    result = []
    for minute in range(request.minutes):
        first = (started + minute * request.minute_s) * 1000
        stop = first + request.minute_s * 1000
        if minute == request.minutes - 1:
            stop = np.inf  # what was still to come counts
        selected = [row for row in rows if first <= row["emitted_ms"] < stop and row["latency"]]
        waits = [row["latency"] for row in selected]
        count = sum(wait["n"] for wait in waits)
        moves = [move for row in selected for move in row["moves"]]
        result.append({
            "response": sum(w["mean"] * w["n"] for w in waits) / count if count else None,
            "slowest": max((wait["p95"] for wait in waits), default=None),
            "results": count,
            "moved": sum(move["bytes"] for move in moves),
            "waited": sum(move["waited"] for move in moves),
        })  # fmt: skip
    return result
