"""Work in a thread that another thread can cancel: loops of Python, and queries of databases.

Python raises `RequestCancelled` in the thread at one of its next instructions; the connections of
the thread interrupt a query. Only a wait of a library is not interrupted: each has a time-out.
"""

import ctypes
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from django.db import connections

from controlplane.processes.runtime.request_bounds import Lane

Result = TypeVar("Result")
# The time for a connection to a PostgreSQL that shall cancel a query (s).
_CANCEL_S: Final = 2.0
_raise_in_thread: Final = ctypes.pythonapi.PyThreadState_SetAsyncExc
# A thread, and the address of a class of exceptions, or None for no exception.
_raise_in_thread.argtypes = (ctypes.c_ulong, ctypes.c_void_p)


class RequestCancelled(BaseException):
    """Is raised in a thread whose request has exceeded its time; no `except Exception` takes it."""


class Job:
    """One piece of work in a thread, with the limits of time of a lane."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._lock = threading.Lock()
        # 0 before and after the work.
        self._thread = 0
        self._began = self._began_cpu = 0.0
        self._connections: list[Any] = []

    def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Return `work(*arguments)`. Raises `RequestCancelled` if it is cancelled."""
        self._connections = [connections[name] for name in connections]
        self._began, self._began_cpu = time.monotonic(), time.thread_time()
        self._thread = threading.get_ident()
        try:
            try:
                return work(*arguments)
            finally:
                self._end()
        except RequestCancelled:
            # Also if it was raised in the `finally` above.
            self._end()
            _drop_connections()
            raise

    def is_over(self) -> bool:
        """Return whether the work has exceeded its time."""
        with self._lock:
            if not self._thread:
                return False
            clock = time.pthread_getcpuclockid(self._thread)
            is_long = time.monotonic() - self._began > self._lane.wall_s
            return is_long or time.clock_gettime(clock) - self._began_cpu > self._lane.cpu_s

    def cancel(self) -> None:
        """Cancel the work, unless it has ended: from another thread."""
        with self._lock:
            if self._thread:
                _raise_in_thread(self._thread, id(RequestCancelled))
                for connection in self._connections:
                    # Closed meanwhile, or the server is away.
                    with suppress(Exception):
                        if connection.vendor == "sqlite":
                            connection.connection.interrupt()
                        else:
                            connection.connection.cancel_safe(timeout=_CANCEL_S)

    def _end(self) -> None:
        with self._lock:
            if self._thread:
                # What has not been raised yet shall not be raised in the next work.
                _raise_in_thread(self._thread, None)
                self._thread = 0


def _drop_connections() -> None:
    """Close the connections of this thread: a transaction may have been left in any state."""
    for name in list(connections):
        with suppress(Exception):
            connections[name].connection.close()
        del connections[name]
