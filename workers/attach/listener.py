"""A listener that puts Spark's streaming events into the queue, without input or output."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from . import events
from .events import Event

_log = logging.getLogger("weir.attach")
# A bound for jobs that start and end queries for months.
_MOST_OPEN: Final = 10_000


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
