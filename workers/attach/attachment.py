"""`attach` registers a listener and starts the reporting thread."""

from __future__ import annotations

import atexit
import logging
import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from . import events
from .events import NAME_CHARS, Event, public
from .reporter import JobReporter, Poster
from .task_summary import TaskSummaries, largest_shuffle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("weir.attach")
# A bound for jobs that start and end queries for months.
_MOST_OPEN: Final = 10_000
# At exit: the event of a query that has just stopped may still be in Spark's bus.
SETTLE_SECONDS: Final = 1.0
# At exit: queued events are sent within this time, or are lost.
FLUSH_SECONDS: Final = 10.0

_lock = threading.Lock()
_attached: dict[tuple[str, str], Attachment] = {}


class WeirListener(StreamingQueryListener):
    """Converts every event to plain values; errors do not reach Spark."""

    def __init__(self, put: Callable[[Event], None], *, error_text: bool = True) -> None:
        self._put = put
        self._error_text = error_text
        self._open: set[str] = set()
        self._warned = False
        # Set while no query is known to run.
        self.settled = threading.Event()
        self.settled.set()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Report a new run."""
        self._send(lambda: events.started(event))

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Report a finished micro-batch."""
        self._send(lambda: events.progress(event.progress.json))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Report that a run waits for input."""
        self._send(lambda: events.idle(event))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Report the end of a run and why."""
        self._send(lambda: events.terminated(event, error_text=self._error_text))

    def _send(self, make: Callable[[], Event]) -> None:
        try:
            event = make()
            self._put(event)
            self._follow(event)
        except Exception as failure:  # noqa: BLE001 - the job is worth more than its report
            if not self._warned:
                self._warned = True
                _log.warning("an event could not be read for Weir: %s", failure)

    def _follow(self, event: Event) -> None:
        if event["kind"] == events.TERMINATED:
            self._open.discard(event["run"])
        elif len(self._open) < _MOST_OPEN:
            self._open.add(event["run"])
        if self._open:
            self.settled.clear()
        else:
            self.settled.set()


class Attachment:
    """The reports of a job to Weir. No method raises; after `detach` nothing is sent."""

    def __init__(self, spark: SparkSession, listener: WeirListener, reporter: JobReporter) -> None:
        self._spark = spark
        self._listener = listener
        self._reporter = reporter

    @property
    def reporting(self) -> bool:
        """Return whether events are still sent: False once detached or refused."""
        return self._reporter.alive

    @property
    def dropped(self) -> int:
        """Return how many events were dropped: the queue was full or Weir rejected them."""
        return self._reporter.dropped

    def detach(self, seconds: float = FLUSH_SECONDS) -> None:
        """Stop listening and send the queued events within `seconds`; the queries continue."""
        try:
            self._spark.streams.removeListener(self._listener)
        except Exception as failure:  # noqa: BLE001 - the job is worth more than its report
            _log.debug("the listener could not be removed: %s", failure)
        self._reporter.close(seconds, ended=False)
        _forget(self)

    def leave(self) -> None:
        """Report the end of the job in the background, after that of its application."""
        self._reporter.wind_up(ended=True)
        _forget(self)

    def end(self, seconds: float = FLUSH_SECONDS) -> None:
        """Report the end of the job and send waiting events, within about `seconds`."""
        if self.reporting:
            self._listener.settled.wait(SETTLE_SECONDS)
        self._reporter.close(seconds, ended=True)
        _forget(self)


def attach(
    spark: SparkSession, url: str, token: str, name: str | None = None, *, error_text: bool = True
) -> Attachment | None:
    """Report the streaming queries of a session to Weir, from a background thread.

    url is where Weir's pages are; token a bearer token of a Weir user with the role viewer; name
    is what the job is called there, by default its application's name. With error_text=False the
    reason of a failed query is its error class alone. Never raises: an error is
    logged as a warning of the logger `weir.attach`, and None is returned. A second call for the
    same application and url returns the first one's attachment.
    """
    try:
        return _attach(spark, url, token, name, error_text)
    except Exception as failure:  # noqa: BLE001 - the job is worth more than its report
        _log.warning("not attached to Weir: %s: %s", type(failure).__name__, failure)
        return None


def _attach(
    spark: SparkSession, url: str, token: str, name: str | None, error_text: bool
) -> Attachment:
    job = job_of(spark, name)
    poster = Poster(url, token)
    key = (poster.address, job["application"])
    with _lock:
        known = _attached.get(key)
        if known is not None and known.reporting:
            return known
    _end_others(key)
    tasks = TaskSummaries(lambda run: largest_shuffle(spark, run))
    reporter = JobReporter(poster, job, complete=tasks)
    listener = WeirListener(reporter.put, error_text=error_text)
    spark.streams.addListener(listener)
    attachment = Attachment(spark, listener, reporter)
    with _lock:
        _attached[key] = attachment
    reporter.start()
    atexit.register(attachment.end)
    return attachment


def job_of(spark: SparkSession, name: str | None) -> dict[str, str]:
    """Return what identifies the job: application id, its name, Spark's version."""
    try:
        context: Any = spark.sparkContext
        application, known_as = str(context.applicationId), str(context.appName)
    except Exception:  # noqa: BLE001 - Spark Connect has no context and raises its own error
        application, known_as = f"session-{uuid.uuid4()}", "Spark Connect session"
    label = public(name or known_as or application)[:NAME_CHARS]
    return {"application": application, "name": label, "spark_version": spark.version}


def _end_others(key: tuple[str, str]) -> None:
    """Report earlier jobs as over: a process has one Spark application at a time."""
    address, _ = key
    with _lock:
        old = [item for (place, _), item in _attached.items() if place == address]
    for value in old:
        value.leave()


def _forget(attachment: Attachment) -> None:
    atexit.unregister(attachment.end)
    with _lock:
        for key in [key for key, item in _attached.items() if item is attachment]:
            del _attached[key]
