"""The driver's heartbeat: the state of an application for the agent and the pages.

Two threads: one shows that this Python process lives, the other that its JVM answers. The second
waits for the JVM as long as that is silent; the first writes when the last answer came.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import redis
from pyspark import SparkContext
from pyspark.sql.streaming.listener import StreamingQueryListener

from controlplane.wire import keys
from controlplane.wire.foreign.entries import values_of

PROGRESS_KEPT: Final = 1024
_ROCKSDB_MEASURES: Final = (
    "rocksdbCommitFlushLatency", "rocksdbCommitFileSyncLatencyMs", "rocksdbTotalBytesWritten",
    "rocksdbSstFileSize",
)  # fmt: skip
logger = logging.getLogger("weir.pipeline")

BEAT_SECONDS: Final = 2.0
# A driver that is gone for this long is not running, whatever it reported last.
EXPIRES_SECONDS: Final = 30


class DriverHeartbeat:
    """Writes the driver hash of a cluster every two seconds, from its own thread."""

    def __init__(self, client: "redis.Redis", cluster: str) -> None:
        self._client = client
        self._key = keys.driver_key(cluster)
        self._fields: dict[str, str | int] = {
            "pid": os.getpid(),
            "started_ms": _now_ms(),
            "state": "starting",
            "batch": -1,
            "error": "",
            "note": "",
            # Those of an earlier driver are in the same hash.
            "jvm_ms": 0,
            "phase": "",
        }
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> "DriverHeartbeat":
        self.update(state="starting")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(timeout=5)

    def update(self, **fields: str | int) -> None:
        """Change fields and write them immediately; a Redis that is away is tried again."""
        with self._lock:
            self._fields = {**self._fields, **fields}
        # The thread writes the same fields again in two seconds.
        with suppress(redis.RedisError):
            self._write()

    def watch_jvm(self, ask: Callable[[], str]) -> None:
        """Call `ask`, which queries the JVM for its phase, every two seconds from now on.

        A daemon thread: a call that a hung JVM never answers does not keep the process from ending.
        """
        threading.Thread(target=self._ask, args=(ask,), name="jvm", daemon=True).start()

    def _ask(self, ask: Callable[[], str]) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            try:
                phase = ask()
            except Exception as error:  # noqa: BLE001 - a JVM that refuses has not answered
                logger.warning("the JVM did not answer: %s", error)
                continue
            self.update(jvm_ms=_now_ms(), phase=phase[:100])

    def _run(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            self.update()

    def _write(self) -> None:
        pipe = self._client.pipeline()
        fields: dict[Any, Any] = {**self._fields, "beat_ms": _now_ms()}
        pipe.hset(self._key, mapping=fields)
        pipe.expire(self._key, EXPIRES_SECONDS)
        if any(isinstance(value, Exception) for value in values_of(pipe)):
            # A value of another type would hide the driver, which the agent then ends.
            self._client.delete(self._key)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class ProgressListener(StreamingQueryListener):
    """Appends every progress report to Redis and updates the batch of the heartbeat.

    Spark reports how long the phases of a batch took, and how large its state is. Spark calls it
    directly: PySpark's own listener reads each field of a report in a call of the JVM, hundreds in
    each batch.
    """

    class Java:
        """The interface that Py4J implements by this class."""

        implements: Final = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]

    def __init__(self, client: "redis.Redis", cluster: str, heartbeat: DriverHeartbeat) -> None:
        self._client = client
        self._key = keys.progress_key(cluster)
        self._heartbeat = heartbeat

    @property
    def _jlistener(self) -> Any:
        # What `addListener` of PySpark registers.
        jvm: Any = SparkContext._jvm  # noqa: SLF001 - PySpark has no function for it
        return jvm.PythonStreamingQueryListenerWrapper(self)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Do nothing: the state becomes "running" after the first batch."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Write the report down."""
        report = json.loads(event.progress().json())
        self._heartbeat.update(state="running", batch=report["batchId"])
        row = json.dumps(progress_row(report), separators=(",", ":"))
        # A lost progress report is a gap in a chart, no more.
        with suppress(redis.RedisError):
            self._client.xadd(self._key, {"p": row}, maxlen=PROGRESS_KEPT)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Report that the application waits for input."""
        self._heartbeat.update(state="running")

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Do nothing: the main thread reports the end and its cause."""


def progress_row(report: dict[str, Any]) -> dict[str, Any]:
    """Return the stored part of a progress report of Spark (durations in ms)."""
    state = (report.get("stateOperators") or [{}])[0]
    measures = state.get("customMetrics", {})
    end = (report.get("sources") or [{}])[0].get("endOffset") or {}
    return {
        "spark_batch": report["batchId"],
        "batch": end.get("batch") if isinstance(end, dict) else None,
        "durations_ms": report.get("durationMs", {}),
        "state_rows": state.get("numRowsTotal", 0),
        "state_memory_bytes": state.get("memoryUsedBytes", 0),
        "state_commit_ms": state.get("commitTimeMs", 0),
        "rocksdb": {name: measures[name] for name in _ROCKSDB_MEASURES if name in measures},
    }
