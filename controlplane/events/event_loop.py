"""An event loop in a separate thread, for coroutines that synchronous code calls often.

`asgiref.sync.async_to_sync` starts a thread, a loop and a Redis connection for every call, which
takes 5.3 s of processor time for 1,000 events.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")
# Longer than the timeouts of Redis connections, whose errors name the reason.
TIMEOUT_S: Final = 30.0


class _Loop:
    """The event loop of this process; a forked child starts its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def started(self) -> asyncio.AbstractEventLoop:
        """Return the running loop, which the first call starts."""
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
                run = self._loop.run_forever
                threading.Thread(target=run, name="event-loop", daemon=True).start()
            return self._loop


_LOOP: Final = _Loop()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop of this process and return its result.

    Must not be called from a coroutine. Raises the errors of the coroutine, and `TimeoutError`.
    """
    return asyncio.run_coroutine_threadsafe(coroutine, _LOOP.started()).result(TIMEOUT_S)
