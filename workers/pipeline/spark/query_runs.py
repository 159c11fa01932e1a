"""The runs of a streaming query in one driver.

Spark itself retries the tasks of a Python worker that has died. The processes that plan and commit
batches have no retry: their end ends the query, which then continues here from its checkpoint. So
does a query of which Redis may have lost some writes in its restart.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from pyspark.errors.exceptions.captured import convert_exception
from pyspark.sql.streaming.query import StreamingQuery

logger = logging.getLogger("weir.pipeline")


class WritesLost(Exception):
    """Redis may have lost writes of the batch in progress: the batch must be run again."""


# Starts in a row without a finished batch; then the driver ends, and the agent starts another one.
# On a busy machine a process may not start within the ten seconds that Spark waits for it.
_STARTS: Final = 10
# The JVM lost a connection to a Python process; an exception in Python has a type of its own.
_LOST: Final = ("java.io.", "java.net.", "java.nio.")
# The start of the traceback's last line, as Spark has it.
_REPEAT: Final = f"\n{WritesLost.__module__}.{WritesLost.__name__}"


class QueryRuns:
    """Starts the same query again and again; `query`: the newest one."""

    def __init__(self, start: Callable[[], StreamingQuery]) -> None:
        self._start = start
        self.query = start()

    def wait(self, stop: threading.Event) -> Exception | None:
        """Wait for a stop or the end of the query; return the error that ended it."""
        starts, error = 1, self._end(stop)
        while error is not None and starts < _STARTS and has_lost_process(error):
            logger.warning("a Python process of Spark has died, the query starts again: %s", error)
            try:
                self.query = self._start()
                error = self._end(stop)
                starts = 1 if self.query.lastProgress else starts + 1
            except Exception as failure:  # noqa: BLE001 - the caller reports it
                starts, error = starts + 1, failure
        return error

    def _end(self, stop: threading.Event) -> Exception | None:
        while self.query.isActive and not stop.wait(0.5):
            pass
        if stop.is_set():
            self.query.stop()
            return None
        return self.query.exception() or RuntimeError("the streaming query ended unexpectedly")


def has_lost_process(error: Exception) -> bool:
    """Return whether a query's end began with a broken connection to a Python process.

    Also if its last batch must be run again (`WritesLost`).
    """
    java = getattr(error, "java_exception", None)
    root: Any = error if java is None else convert_exception(java)
    while (cause := getattr(root, "_cause", None)) is not None:
        root = cause
    return str(getattr(root, "_desc", "")).startswith(_LOST) or _REPEAT in str(error)
