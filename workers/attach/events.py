"""Reports from Spark's events: measures and descriptions; no rows, offsets, plans or settings.

An event is {kind, id, run, name, at} and, by its kind, {progress} or {error, error_class}; `at` is
ISO 8601 in UTC. A progress is {batch, rows, input_rate, processed_rate, duration_ms, phases,
state, watermark, sources, sink}: rates in rows/s, phases in ms by Spark's names, state rows,
bytes and partitions summed over the operators. In some there is also `tasks`, {partitions,
records, median_records, ms, median_ms}, from `task_summary.py`.
"""

from __future__ import annotations

import json
import math
import re
import time
from typing import Any, Dict, Final  # noqa: UP035 - an alias is read at run time, also by 3.9

from .redaction import HIDDEN, without_password

Event = Dict[str, Any]  # noqa: UP006

STARTED: Final = "started"
PROGRESS: Final = "progress"
IDLE: Final = "idle"
TERMINATED: Final = "terminated"

MOST_SOURCES: Final = 20
MOST_METRICS: Final = 20
MOST_PHASES: Final = 20
TEXT_CHARS: Final = 300
NAME_CHARS: Final = 200
ERROR_CHARS: Final = 1000
# The head of a long error has its kind, the tail (of a Python traceback) its reason.
_ERROR_HEAD: Final = 200
_USER: Final = re.compile(r"://[^/@\s]+@")
# Before the first event Spark's watermark is the epoch.
_NO_WATERMARK: Final = "1970-01-01T00:00:00.000Z"


def started(event: Any) -> Event:
    """Return the event of a run that began."""
    return _event(STARTED, event.id, event.runId, event.timestamp, event.name)


def idle(event: Any) -> Event:
    """Return the event of a run that waits for input."""
    return _event(IDLE, event.id, event.runId, event.timestamp)


def terminated(event: Any, *, error_text: bool = True) -> Event:
    """Return the event of a run that ended; error: "" for a normal end."""
    answer = _event(TERMINATED, event.id, event.runId, _now())
    failed = event.exception is not None
    kind = str(getattr(event, "errorClassOnException", None) or "")[:NAME_CHARS]
    text = reason(str(event.exception)) if failed and error_text else ""
    return {**answer, "error": text or kind or ("failed" if failed else ""), "error_class": kind}


def progress(text: str) -> Event:
    """Return the event of a finished micro-batch from Spark's JSON."""
    report: dict[str, Any] = json.loads(text)
    answer = _event(
        PROGRESS, report["id"], report["runId"], report["timestamp"], report.get("name")
    )
    return {**answer, "progress": measures(report)}


def measures(report: dict[str, Any]) -> dict[str, Any]:
    """Return the reported measures of one of Spark's progress reports."""
    phases = report.get("durationMs") or {}
    sources = (report.get("sources") or [])[:MOST_SOURCES]
    watermark = (report.get("eventTime") or {}).get("watermark")
    return {
        "batch": report["batchId"],
        "rows": sum(source.get("numInputRows") or 0 for source in sources),
        "input_rate": _total(sources, "inputRowsPerSecond"),
        "processed_rate": _total(sources, "processedRowsPerSecond"),
        "duration_ms": report.get("batchDuration") or phases.get("triggerExecution") or 0,
        "phases": dict(list(phases.items())[:MOST_PHASES]),
        "state": _state(report.get("stateOperators") or []),
        "watermark": None if watermark == _NO_WATERMARK else watermark,
        "sources": [_source(source) for source in sources],
        "sink": _sink(report.get("sink") or {}),
    }


def reason(error: str) -> str:
    """Return an error without Java's stack and without secrets, at most 1000 characters."""
    lines = [line for line in error.splitlines() if not line.startswith(("\tat ", "\t... "))]
    text = public("\n".join(lines).partition("\n=== Streaming Query ===")[0].strip())
    if len(text) <= ERROR_CHARS:
        return text
    cut = " […] "
    return text[:_ERROR_HEAD] + cut + text[-(ERROR_CHARS - _ERROR_HEAD - len(cut)) :]


def _event(kind: str, query: object, run: object, moment: str, name: str | None = None) -> Event:
    return {
        "kind": kind,
        "id": str(query),
        "run": str(run),
        "name": public(name or "")[:NAME_CHARS],
        "at": moment,
    }


def _state(operators: list[dict[str, Any]]) -> dict[str, int] | None:
    if not operators:
        return None
    names = {
        "rows": "numRowsTotal",
        "updated": "numRowsUpdated",
        "bytes": "memoryUsedBytes",
        "dropped": "numRowsDroppedByWatermark",
    }
    sums = {
        name: sum(int(operator.get(field) or 0) for operator in operators)
        for name, field in names.items()
    }
    return {
        **sums,
        "partitions": sum(int(item.get("numShufflePartitions") or 0) for item in operators),
    }


def _source(source: dict[str, Any]) -> dict[str, Any]:
    result = {name: _number(value) for name, value in (source.get("metrics") or {}).items()}
    metrics = {
        storable(str(name))[:60]: value for name, value in result.items() if value is not None
    }
    return {
        "description": public(str(source.get("description", "")))[:TEXT_CHARS],
        "rows": source.get("numInputRows") or 0,
        "input_rate": _number(source.get("inputRowsPerSecond")),
        "processed_rate": _number(source.get("processedRowsPerSecond")),
        "metrics": dict(list(metrics.items())[:MOST_METRICS]),
    }


def _sink(sink: dict[str, Any]) -> dict[str, Any]:
    rows = sink.get("numOutputRows")
    description = public(str(sink.get("description", "")))[:TEXT_CHARS]
    # Spark reports -1 for sinks that do not count.
    return {"description": description, "rows": rows if rows is not None and rows >= 0 else None}


def _total(sources: list[dict[str, Any]], field: str) -> float | None:
    known = [
        value for value in (_number(source.get(field)) for source in sources) if value is not None
    ]
    return sum(known) if known else None


def _number(value: object) -> float | None:
    """Return a finite number; Spark writes metrics as texts and omits unknown rates."""
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def public(text: str) -> str:
    """Return a text without secrets, and without the users of addresses in it."""
    return _USER.sub(f"://{HIDDEN}@", without_password(storable(text)))


def storable(text: str) -> str:
    """Return a text that every database keeps: no NUL, no half of a character."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _now() -> str:
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
