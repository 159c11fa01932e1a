"""Messages of attached jobs as workers/attach sends them, and a server that takes them."""

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import pytest

from workers.attach import events

QUERY = "00000000-0000-0000-0000-00000000000a"
RUN = "00000000-0000-0000-0000-00000000000b"
JOB = {"application": "local-1", "name": "nightly", "spark_version": "4.3.0"}
RATE_SOURCE = "RateStreamV2[rowsPerSecond=20]"


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Return what attached jobs have logged; threads of earlier tests may log, too."""
    return [record for record in caplog.records if record.name == "weir.attach"]


def spark_progress(batch: int, at: datetime, **changed: Any) -> dict[str, Any]:
    """Return a progress report as Spark 4.3 writes it: a stateful query over two sources."""
    operator = {
        "operatorName": "stateStoreSave", "numRowsTotal": 30, "numRowsUpdated": 3,
        "allUpdatesTimeMs": 73, "numRowsRemoved": 0, "allRemovalsTimeMs": 12, "commitTimeMs": 172,
        "memoryUsedBytes": 2640, "numRowsDroppedByWatermark": 1, "numShufflePartitions": 1,
        "numStateStoreInstances": 1, "customMetrics": {"loadedMapCacheHitCount": 0},
    }  # fmt: skip
    kafka = {
        "description": "KafkaV2[Subscribe[orders]]", "startOffset": {"orders": {"0": 5}},
        "endOffset": {"orders": {"0": 7}}, "latestOffset": {"orders": {"0": 9}},
        "numInputRows": 40, "inputRowsPerSecond": 20.0, "processedRowsPerSecond": 80.0,
        "metrics": {"maxOffsetsBehindLatest": "12", "avgOffsetsBehindLatest": "NaN"},
    }  # fmt: skip
    rate = {
        "description": RATE_SOURCE, "startOffset": 3, "endOffset": 4, "latestOffset": 4,
        "numInputRows": 10, "inputRowsPerSecond": 5.0, "processedRowsPerSecond": 20.0,
    }  # fmt: skip
    return {
        "id": QUERY, "runId": RUN, "name": "counts", "timestamp": iso(at), "batchId": batch,
        "batchDuration": 500, "numInputRows": 50, "inputRowsPerSecond": 25.0,
        "processedRowsPerSecond": 100.0,
        "durationMs": {"addBatch": 300, "commitOffsets": 24, "getBatch": 1, "latestOffset": 0,
                       "queryPlanning": 80, "triggerExecution": 499, "walCommit": 84},
        "eventTime": {"watermark": iso(at - timedelta(seconds=4))},
        "stateOperators": [operator, operator], "sources": [kafka, rate],
        "sink": {"description": "NoopTable", "numOutputRows": -1},
        "observedMetrics": {"secret": {"total": 7}},
    } | changed  # fmt: skip


def progress_event(
    batch: int, at: datetime, run: str = RUN, tasks: dict[str, int] | None = None, **changed: Any
) -> dict[str, Any]:
    """Return the event of a micro-batch, as the client makes it of Spark's report."""
    report = spark_progress(batch, at, **changed) | {"runId": run}
    told = events.progress(json.dumps(report))
    return told | {"progress": told["progress"] | ({"tasks": tasks} if tasks else {})}


def event(kind: str, at: datetime, run: str = RUN, **more: Any) -> dict[str, Any]:
    """Return an event without measures."""
    return {"kind": kind, "id": QUERY, "run": run, "name": "counts", "at": iso(at)} | more


def message(*told: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a message with these events."""
    return {"job": JOB, "dropped": 0, "ended": False, "events": list(told)} | more


def iso(at: datetime) -> str:
    """Return a moment as Spark writes it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def run_number(number: int) -> str:
    """Return the id of a run."""
    return str(UUID(int=number))


class Receiver:
    """A real HTTP server that keeps what it was sent and answers what it is told to.

    answers are given in turn, the last one for good; a test waits on `arrived`.
    """

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers) or [202]
        self.headers: dict[str, str] = {}
        self.messages: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.arrived = threading.Condition()
        self.hold = threading.Event()
        self.hold.set()
        self.url = ""

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        """Keep a message and return the status to answer."""
        self.hold.wait(20)
        with self.arrived:
            status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            self.headers = headers | {"path": path}
            self.raw.append(body)
            self.messages.append(json.loads(body))
            self.arrived.notify_all()
        return status

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        """Return the messages once there are so many."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.messages) >= count, 20), self.messages
            return list(self.messages)

    def wait_for_events(self, count: int) -> list[dict[str, Any]]:
        """Return all events once there are so many, resent ones included."""

        def told() -> list[dict[str, Any]]:
            return [event for one in self.messages for event in one["events"]]

        with self.arrived:
            assert self.arrived.wait_for(lambda: len(told()) >= count, 20), self.messages
            return told()


@contextmanager
def receiving(*answers: int) -> Iterator[Receiver]:
    """Yield a receiver that listens on this machine."""
    receiver = Receiver(*answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.take(self.path, dict(self.headers), body)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", f"{receiver.url}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *parts: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.hold.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
