"""Limits of users' code in a Python worker: time per call, and memory.

A signal interrupts a call after its time limit, which is a fault of its query. Beyond the memory
limit, allocations raise `MemoryError` instead of ending the process. A thread of faulthandler,
which needs no interpreter, ends the process of a call that no signal interrupts;
`workers.pipeline.engine.failures.probe` finds its query.
"""

import faulthandler
import gc
import os
import resource
import signal
import sys
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
# Settings that Spark's executors need, too.
SETTINGS: Final = (CALL_SECONDS, WORKER_MEMORY_MB)
_DEFAULT_SECONDS: Final = 10.0
_DEFAULT_MB: Final = 2048
# A worker with less memory cannot load Arrow.
_LEAST_MB: Final = 256
# Seconds between repeated interruptions, for code that catches the first one.
_AGAIN_SECONDS: Final = 0.5
# A process that cannot allocate so much is short of memory, whatever query it evaluates.
_HEADROOM_BYTES: Final = 16 << 20


class TimeLimit(BaseException):
    """A call has exceeded its time limit.

    A `BaseException`, so that `except Exception` does not catch it.
    """


@cache
def call_seconds() -> float:
    """Return the time limit of a user's function in seconds: WEIR_CALL_SECONDS, 10 by default."""
    return max(0.01, _number(CALL_SECONDS, _DEFAULT_SECONDS))


def _number(name: str, default: float) -> float:
    try:
        return float(os.environ.get(name, "") or default)
    except ValueError:
        # The agent rejects such a setting at its start; executors use the default.
        return default


@contextmanager
def time_limit(seconds: float, end_after_s: float | None = None) -> Iterator[None]:
    """Raise `TimeLimit` in the block after so many seconds, or at the end of an outer limit.

    Signals reach the main thread only; other threads have no limit. A block that no signal
    interrupts ends the process after `end_after_s` seconds (None: never).
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
    if end_after_s is not None:
        faulthandler.dump_traceback_later(end_after_s, exit=True, file=sys.__stderr__ or 2)
    try:
        yield
    finally:
        armed = False
        if end_after_s is not None:
            faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            rest = max(0.001, left - (time.monotonic() - started))
            signal.setitimer(signal.ITIMER_REAL, rest, again)


def worker_memory() -> int:
    """Return the memory limit of a process in bytes: WEIR_WORKER_MEMORY_MB, 2048 by default."""
    return int(max(_LEAST_MB, _number(WORKER_MEMORY_MB, _DEFAULT_MB))) << 20


@cache
def limit_memory() -> int:
    """Limit the memory of this process, once; return the limit in bytes.

    A lower existing limit is kept.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    known = [item for item in (soft, hard, worker_memory()) if item != resource.RLIM_INFINITY]
    result = min(known)
    resource.setrlimit(resource.RLIMIT_DATA, (result, hard))
    return result


def has_headroom() -> bool:
    """Return whether this process can allocate 16 MiB."""
    gc.collect()
    try:
        np.ones(_HEADROOM_BYTES, np.uint8)
    except MemoryError:
        return False
    return True
