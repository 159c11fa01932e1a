"""A cluster of 64 nodes and 500 streams with half an hour of samples, and its telemetry rows."""

import json
import threading
import time
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from benchmarks.api_filling import add_queries
from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.models import Cluster
from controlplane.telemetry import series, time_series
from controlplane.telemetry.samples import PreviousBatch, moment_of, sample_of
from controlplane.wire.keys import telemetry_key
from tests.support.cluster import small_cluster

NODES: Final = 64
STREAMS: Final = 500
QUERIES: Final = 2_000
HISTORY_S: Final = 1_800
_CAPACITY: Final = 500.0


def live_cluster(by: Actor) -> Cluster:
    """Return a running cluster with queries and stored samples of half an hour until now."""
    cluster = small_cluster(by, nodes=NODES, stream_count=STREAMS)
    add_queries(cluster, QUERIES)
    Cluster.objects.filter(pk=cluster.pk).update(desired="running", state="running")
    cluster.refresh_from_db()
    rows = Rows(cluster)
    now_ms = round(1000 * time.time())
    before: int | None = None
    samples = []
    for second in range(HISTORY_S, 0, -1):
        row = rows.next(now_ms - 1000 * second)
        samples.append(sample_of(row, PreviousBatch(before, 1000), [_CAPACITY] * NODES))
        before = row["emitted_ms"]
    time_series.record(cluster, samples)
    series.roll_up(datetime.now(UTC))
    Cluster.objects.filter(pk=cluster.pk).update(last_sample_at=moment_of(samples[-1]["t"]))
    return cluster


class Rows:
    """Telemetry rows of a cluster whose loads vary slowly around 60 % of capacity."""

    def __init__(self, cluster: Cluster) -> None:
        self._draw = np.random.default_rng(19)
        self._streams = list(cluster.streams.order_by("pk").values_list("pk", flat=True))
        self._share = self._draw.dirichlet(np.full(NODES, 20.0))
        self._batch = 0

    def next(self, emitted_ms: int) -> dict[str, Any]:
        """Return the row of the next micro-batch."""
        self._batch += 1
        total = 0.6 * NODES * _CAPACITY * (1 + 0.2 * np.sin(self._batch / 300))
        loads = self._draw.poisson(total * self._share)
        read = int(loads.sum() / 1.3)
        p50, p95 = self._draw.normal(420, 20), self._draw.normal(900, 60)
        latency = {"n": read, "p50": p50, "p95": p95, "p99": 1.3 * p95}
        counts = self._draw.multinomial(read, np.full(STREAMS, 1 / STREAMS))
        streams = zip(self._streams, counts, strict=True)
        return {
            "batch": self._batch, "version": 1, "emitted_ms": emitted_ms,
            "event_ms": emitted_ms - 500, "in": read, "read": read, "delivered": int(loads.sum()),
            "late": 0, "waiting": 0, "state_bytes": 10_000_000, "latency": latency,
            "streams": {str(stream): int(count) for stream, count in streams}, "splits": [],
            "nodes": [_node(index, int(load)) for index, load in enumerate(loads)],
        }  # fmt: skip


def _node(index: int, load: int) -> dict[str, Any]:
    return {
        "node": index, "loads": load, "bytes": 60 * load, "busy": load / _CAPACITY, "tasks": 31,
        "state_bytes": 150_000, "late": 0, "waiting": 0, "p95": 700.0 + load / 4,
    }  # fmt: skip


class Telemetry:
    """Append a row to Redis every second, as the data plane does, until it is stopped."""

    def __init__(self, cluster: Cluster) -> None:
        self._key, self._rows = telemetry_key(cluster.slug), Rows(cluster)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        """Stop, and return the time (s) of the last row."""
        self._stopped.set()
        self._thread.join()
        return self._last_s

    def _run(self) -> None:
        client = redis_client()
        due = time.time()
        while not self._stopped.wait(max(0.0, due - time.time())):
            self._last_s = time.time()
            row = self._rows.next(round(1000 * self._last_s))
            client.xadd(self._key, {"t": json.dumps(row)})
            due += 1.0
