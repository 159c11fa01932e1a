"""Spark's own view of each batch: how long its phases took, how large its state is."""

import json
from contextlib import suppress
from typing import Any, Final

import redis
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from controlplane.wire import keys
from workers.pipeline.reports.heartbeat import Heartbeat

PROGRESS_KEPT: Final = 1024
_ROCKSDB_MEASURES: Final = (
    "rocksdbCommitFlushLatency", "rocksdbCommitFileSyncLatencyMs", "rocksdbTotalBytesWritten",
    "rocksdbSstFileSize",
)  # fmt: skip


class ProgressListener(StreamingQueryListener):
    """Appends every progress report to Redis and updates the batch of the heartbeat."""

    def __init__(self, client: "redis.Redis", cluster: str, heartbeat: Heartbeat) -> None:
        self._client = client
        self._key = keys.progress_key(cluster)
        self._heartbeat = heartbeat

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Do nothing: the state becomes "running" after the first batch."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Write the report down."""
        report = json.loads(event.progress.json)
        self._heartbeat.update(state="running", batch=report["batchId"])
        row = json.dumps(progress_row(report), separators=(",", ":"))
        # A lost progress report is a gap in a chart, no more.
        with suppress(redis.RedisError):
            self._client.xadd(self._key, {"p": row}, maxlen=PROGRESS_KEPT)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Report that the application waits for input."""
        self._heartbeat.update(state="running")

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
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
