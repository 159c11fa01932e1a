"""What the benchmarks of the data plane share: Weir's application, a drawn log, measures of both.

The drawn log has 80 streams of Zipf popularity, as has the demo; everything drawn is seeded.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
import psutil
import pyarrow as pa
import redis

from controlplane.wire import keys
from controlplane.wire.producer import Producer
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.query_actions import AddQuery
from tests.support.driver import Application, Driver, Telemetry
from tests.support.texts import SUMMARY_TEXT
from workers.demo.recording import REPORT

STREAMS: Final = 80
EVENT_START_MS: Final = 1_211_000_000_000
# Longer than any start on a machine with other work; a measure that takes it is of no use.
PATIENCE_SECONDS: Final = 600.0
_MEGABYTE: Final = 1 << 20


class Weir(Driver):
    """`python -m workers.pipeline` with batches of a chosen size; ended by leaving the context."""

    def __init__(
        self,
        url: str,
        folder: Path,
        cluster: str,
        nodes: int,
        splits: int,
        max_records: int = 200_000,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(url, folder, cluster, nodes=nodes, splits=splits)
        self._max_records = max_records

    def command(self) -> list[str]:
        """Return the command line of the process to start."""
        return [*super().command(), "--max-records", str(self._max_records)]

    def batches_until(self, records: int, seconds: float) -> Telemetry:
        """Return the telemetry once so many records were read, or after so many seconds."""
        with suppress(TimeoutError):
            wait(self, lambda rows: sum(row["in"] for row in rows) >= records, seconds)
        return self.telemetry()

    def memory(self) -> dict[str, float]:
        """Return the resident megabytes of its processes."""
        assert self.process is not None
        return memory_of(self.process.pid)

    def __enter__(self) -> "Weir":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()


def wait(
    application: Application, done: Callable[[Telemetry], bool], seconds: float = PATIENCE_SECONDS
) -> None:
    """Wait until the telemetry satisfies `done`. Raises `TimeoutError`."""
    until = time.monotonic() + seconds
    while not done(application.telemetry()):
        assert application.process is not None
        if application.process.poll() is not None:
            raise RuntimeError(f"the process ended:\n{application.log.read_text()[-4000:]}")
        if time.monotonic() > until:
            raise TimeoutError(f"not done in {seconds} s:\n{application.log.read_text()[-2000:]}")
        time.sleep(0.1)


def popularity() -> Any:
    """Return the share of each stream in the records."""
    weights = 1 / np.arange(1, STREAMS + 1)
    return weights / weights.sum()


def append(producer: Producer, rng: np.random.Generator, records: int, event_ms: int) -> int:
    """Append records of one event minute, over all streams by their popularity."""
    counts = rng.multinomial(records, popularity())
    producer.append({s + 1: block(rng, int(n), event_ms) for s, n in enumerate(counts) if n})
    return records


def block(rng: np.random.Generator, records: int, event_ms: int) -> pa.RecordBatch:
    """Return drawn records of one stream and event minute."""
    ts = pa.array(event_ms + rng.integers(0, 60_000, records)).cast(REPORT.arrow.field("ts").type)
    numbers = [pa.array(rng.integers(0, 2000, records), pa.int32()) for _ in range(4)]
    return pa.RecordBatch.from_arrays([ts, *numbers], schema=REPORT.arrow)


def ticks(seconds: float, every: float = 0.5) -> Iterator[int]:
    """Yield the event time (ms) every so many seconds, a minute of it per second."""
    started = time.monotonic()
    while (passed := time.monotonic() - started) < seconds:
        yield EVENT_START_MS + int(passed * 60_000)
        time.sleep(every)


def drawn_streams(rng: np.random.Generator) -> tuple[int, ...]:
    """Return one to five streams by their popularity."""
    drawn = rng.choice(STREAMS, size=rng.integers(1, 6), replace=False, p=popularity())
    return tuple(sorted((drawn + 1).tolist()))


def small_queries(count: int, nodes: int) -> list[Action]:
    """Return queries of one task each over one to five streams."""
    rng = np.random.default_rng(2)
    return [
        AddQuery(query, 0, query % nodes, drawn_streams(rng), SUMMARY_TEXT)
        for query in range(1, count + 1)
    ]


def batch_durations(client: "redis.Redis", cluster: str) -> list[int]:
    """Return how long each micro-batch took as Spark reports it, ms."""
    rows: Any = client.xrange(keys.progress_key(cluster))
    return [json.loads(f[b"p"])["durations_ms"]["triggerExecution"] for _, f in rows]


def memory_of(pid: int) -> dict[str, float]:
    """Return the resident megabytes of a process and all its children.

    `rss` counts a page that processes share once for each of them, `pss` once in all.
    """
    root = psutil.Process(pid)
    total = {"processes": 0, "rss": 0.0, "pss": 0.0, "jvm_rss": 0.0}
    for process in (root, *root.children(recursive=True)):
        try:
            sizes = process.memory_full_info()
            is_jvm = process.name() == "java"
        except psutil.NoSuchProcess:
            continue
        total["processes"] += 1
        total["rss"] += sizes.rss / _MEGABYTE
        total["pss"] += sizes.pss / _MEGABYTE
        total["jvm_rss"] += sizes.rss / _MEGABYTE if is_jvm else 0
    return {name: round(value) for name, value in total.items()}
