"""An event loop in a separate thread, for coroutines that synchronous code calls often.

`asgiref.sync.async_to_sync` starts a thread, a loop and a Redis connection for every call, which
takes 5.3 s of processor time for 1,000 events.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from functools import lru_cache
from typing import Any, Final, TypeVar

T = TypeVar("T")
# Longer than the timeouts of Redis connections, whose errors name the reason.
TIMEOUT_S: Final = 30.0
# One thread at a time starts the loop.
_LOCK: Final = threading.Lock()


@lru_cache(maxsize=1)
def _started(_pid: int) -> asyncio.AbstractEventLoop:
    """Start the event loop of this process; a forked child starts its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="event-loop", daemon=True).start()
    return loop


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop of this process and return its result.

    Must not be called from a coroutine. Raises the errors of the coroutine, and `TimeoutError`.
    """
    with _LOCK:
        loop = _started(os.getpid())
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result(TIMEOUT_S)
