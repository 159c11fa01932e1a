"""An event loop in a thread of its own, for coroutines that synchronous code calls often.

`asgiref.sync.async_to_sync` starts a thread, a loop and with it a Redis connection for every call:
sending 1,000 events took 5.3 s of processor time that way.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")
# Longer than any timeout of a Redis connection, whose error names the reason.
TIMEOUT_S: Final = 30.0


class _Loop:
    """The loop of this process; a child of a fork starts its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def started(self) -> asyncio.AbstractEventLoop:
        """Return the running loop; start it on the first call."""
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
                run = self._loop.run_forever
                threading.Thread(target=run, name="event-loop", daemon=True).start()
            return self._loop


_LOOP: Final = _Loop()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop of this process and return its result.

    Must not be called from a coroutine. Raises what the coroutine raises, and `TimeoutError`.
    """
    return asyncio.run_coroutine_threadsafe(coroutine, _LOOP.started()).result(TIMEOUT_S)
