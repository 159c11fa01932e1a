"""Limits of users' code in a Python worker: time per call, and memory.

A call that exceeds its time is interrupted by a signal, so it becomes a fault of its query. A
worker that exceeds its memory gets a `MemoryError` where it requests more, and is not killed.
`workers.pipeline.engine.failures.probe` finds what neither can stop: a loop inside of compiled
code, or a crash.
"""

import gc
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Final

import numpy as np

CALL_SECONDS: Final = "WEIR_CALL_SECONDS"
WORKER_MEMORY_MB: Final = "WEIR_WORKER_MEMORY_MB"
# Names of the settings that Spark's executors need, too.
SETTINGS: Final = (CALL_SECONDS, WORKER_MEMORY_MB)
_DEFAULT_SECONDS: Final = 10.0
_DEFAULT_MB: Final = 2048
# Below this a worker cannot even load Arrow.
_LEAST_MB: Final = 256
# Code that swallows the first interruption gets another one after so many seconds.
_AGAIN_SECONDS: Final = 0.5
# A process that cannot allocate so much is short of memory, whatever query is being evaluated.
_HEADROOM_BYTES: Final = 16 << 20


class TimeLimit(BaseException):
    """A call has exceeded its time limit.

    No `Exception`, so that a loop that catches all exceptions does not swallow it.
    """


@cache
def call_seconds() -> float:
    """Return the time limit of a user's function in seconds: WEIR_CALL_SECONDS, 10 by default."""
    return max(0.01, _number(CALL_SECONDS, _DEFAULT_SECONDS))


def _number(name: str, default: float) -> float:
    try:
        return float(os.environ.get(name, "") or default)
    except ValueError:
        # The agent refuses such a setting at its start; an executor elsewhere uses the default.
        return default


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeLimit` in the block after so many seconds, or earlier if an outer limit ends.

    Signals reach the main thread only; in another thread there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    armed, started = True, time.monotonic()

    def expire(_number: int, _frame: FrameType | None) -> None:
        if armed:
            raise TimeLimit(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expire)
    outer, _ = signal.getitimer(signal.ITIMER_REAL)
    left, again = signal.setitimer(
        signal.ITIMER_REAL, min(seconds, outer or seconds), _AGAIN_SECONDS
    )
    try:
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            rest = max(0.001, left - (time.monotonic() - started))
            signal.setitimer(signal.ITIMER_REAL, rest, again)


@cache
def limit_memory() -> int:
    """Limit the memory of this process, once; returns the limit in bytes.

    WEIR_WORKER_MEMORY_MB, 2048 by default. A lower limit that is there already stays.
    """
    wanted = int(max(_LEAST_MB, _number(WORKER_MEMORY_MB, _DEFAULT_MB))) << 20
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    known = [item for item in (soft, hard, wanted) if item != resource.RLIM_INFINITY]
    result = min(known)
    resource.setrlimit(resource.RLIMIT_DATA, (result, hard))
    return result


def has_headroom() -> bool:
    """Return whether this process can still allocate 16 MiB: else the shortage is its own."""
    gc.collect()
    try:
        np.ones(_HEADROOM_BYTES, np.uint8)
    except MemoryError:
        return False
    return True
