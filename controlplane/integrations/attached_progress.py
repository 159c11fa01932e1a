"""Changes of a run by an event of its attached job, and rows of its progress."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from controlplane.models import AttachedQuery

STARTED, PROGRESS, IDLE, TERMINATED = "started", "progress", "idle", "terminated"
# Metrics of the lag by the names that Spark's sources use; the first known one counts.
LAG_METRICS = {
    "maxOffsetsBehindLatest": "records",
    "numFilesOutstanding": "files",
    "numBytesOutstanding": "bytes",
}
_STATE_OF = {
    STARTED: AttachedQuery.State.RUNNING,
    PROGRESS: AttachedQuery.State.RUNNING,
    IDLE: AttachedQuery.State.IDLE,
}


def apply_event(
    run: AttachedQuery,
    kind: str,
    moment: datetime,
    name: str,
    progress: Mapping[str, Any] | None,
    error: str,
) -> None:
    """Apply an event to its run; older or repeated events change nothing."""
    run.name = name or run.name
    run.started_at = min(run.started_at, moment)
    if progress is not None:
        _apply_progress(run, progress, moment)
    if run.over:
        return
    if kind == TERMINATED:
        run.state = AttachedQuery.State.FAILED if error else AttachedQuery.State.TERMINATED
        run.state_at, run.ended_at, run.detail = moment, moment, error
    elif moment >= run.state_at:
        run.state, run.state_at = _STATE_OF[kind], moment


def progress_values(progress: Mapping[str, Any], moment: datetime) -> dict[str, Any]:
    """Return the values of `AttachedProgress` for a progress of the API."""
    state, watermark = progress.get("state"), progress.get("watermark")
    return {
        "t": round(moment.timestamp() * 1000),
        "batch": progress["batch"],
        "rows": progress["rows"],
        "input": progress["input_rate"],
        "processed": progress["processed_rate"],
        "duration_ms": progress["duration_ms"],
        "phases": dict(progress["phases"]),
        "state_rows": state["rows"] if state else None,
        "state_bytes": state["bytes"] if state else None,
        "state_dropped": state["dropped"] if state else None,
        "watermark_ms": round(watermark.timestamp() * 1000) if watermark else None,
        "lags": [lag_of(source)[0] for source in progress["sources"]],
    }


def lag_of(source: Mapping[str, Any]) -> tuple[float | None, str]:
    """Return the lag of a source with its unit, None if the source does not report it."""
    metrics = source.get("metrics") or {}
    for name, unit in LAG_METRICS.items():
        if name in metrics:
            return metrics[name], unit
    return None, ""


def measured(values: Mapping[str, Any]) -> datetime:
    """Return the moment of a row."""
    return datetime.fromtimestamp(values["t"] / 1000, UTC)


def _apply_progress(run: AttachedQuery, progress: Mapping[str, Any], moment: datetime) -> None:
    if run.last_batch is not None and progress["batch"] < run.last_batch:
        return
    run.last_batch, run.last_progress_at = progress["batch"], moment
    run.last = progress_values(progress, moment)
    run.sources = [dict(source) for source in progress["sources"]]
    run.sink = dict(progress["sink"])
