"""The law of transactions: inside `atomic` nothing waits for anything but the database.

A transaction that waits holds what it has locked: on SQLite every write of the site. `watch` puts a
guard at each door out of the process: sockets, other threads and event loops, tasks, sleep, files,
child processes. A door that opens while the code under test is inside its own `atomic` is recorded,
and the test fails (tests/conftest.py); transactions that tests open themselves do not count.
"""

import asyncio
import builtins
import concurrent.futures
import io
import os
import queue
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ContextDecorator
from functools import wraps
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, Final

# Places of waits inside transactions, since `forgotten`.
waits: Final[list[str]] = []
# Opening a transaction for them is not the code under test: the tests and their tools.
_TESTS: Final = ("tests.", "tests", "django.test.", "pytest_django.", "conftest")
_SHOWN_FRAMES: Final = 12
# Exempt: what a process loads once, as code or with it.
_LOADING: Final = (
    # Modules that open files as they are imported, as some of numpy and scipy do.
    "<frozen importlib._bootstrap>",
    # Compiled machine code, by the first call of a function: an import.
    "/numba/core/caching.py",
    "/numba/core/entrypoints.py",
    # The list of common passwords that Django ships, by the first password that is stored.
    "/django/contrib/auth/password_validation.py",
)


class _Depth(threading.local):
    """How many transactions of the code under test are open in this thread."""

    value = 0


_depth = _Depth()


def watch() -> None:
    """Guard the doors of this process, once."""
    from django.db.transaction import Atomic  # noqa: PLC0415

    if hasattr(Atomic.__enter__, "__wrapped__"):
        return
    _count(Atomic)
    sock: Any = socket.socket
    for name in ("connect", "connect_ex", "send", "sendall", "sendto", "recv", "recv_into"):
        _guard(sock, name)
    _guard(socket, "getaddrinfo")
    _guard(time, "sleep")
    for module in (builtins, io):
        _guard(module, "open")
    _guard(os, "open")
    _guard(subprocess.Popen, "__init__")
    _guard(queue.Queue, "get")
    _guard(Connection, "recv_bytes")
    _guard(concurrent.futures.Future, "result")
    _guard(asyncio, "run")
    _guard_clients()


def _guard_clients() -> None:
    """Guard what waits in C or in other threads."""
    from asgiref.sync import AsyncToSync  # noqa: PLC0415
    from celery import Celery  # noqa: PLC0415
    from celery.result import AsyncResult  # noqa: PLC0415

    _guard(AsyncToSync, "__call__")
    _guard(Celery, "send_task")
    _guard(AsyncResult, "get")


def _count(atomic: Any) -> None:
    enter, leave = atomic.__enter__, atomic.__exit__

    @wraps(enter)
    def entered(self: Any) -> None:
        enter(self)
        self._counted = _opener(sys._getframe(1)).startswith(_TESTS) is False
        _depth.value += self._counted

    @wraps(leave)
    def left(self: Any, *error: Any) -> None:
        # Work on commit runs in `leave`: outside.
        _depth.value -= self._counted
        leave(self, *error)

    # Of transactions that are open already.
    atomic._counted = False
    atomic.__enter__, atomic.__exit__ = entered, left


def _opener(frame: FrameType) -> str:
    """Return the module that opens a transaction; of a decorated function, that of the function."""
    if frame.f_code.co_filename == ContextDecorator.__call__.__code__.co_filename:
        function = frame.f_locals.get("func")
        if function is not None:
            return str(function.__module__)
        assert frame.f_back is not None
        return _opener(frame.f_back)
    return str(frame.f_globals.get("__name__", ""))


def _is_loading(frame: FrameType | None) -> bool:
    """Return True if an import or an exempt module opens the file."""
    while frame is not None and not frame.f_code.co_filename.endswith(_LOADING):
        frame = frame.f_back
    return frame is not None


def _guard(owner: Any, name: str) -> None:
    door: Callable[..., Any] = getattr(owner, name)

    @wraps(door)
    def guarded(*args: Any, **named: Any) -> Any:
        # A queue that is asked without blocking does not wait; pools of connections do so when the
        # garbage collector deletes them, wherever that happens.
        is_waiting = named.get("block", True)
        if _depth.value and is_waiting and not _is_loading(sys._getframe(1)):
            stack = "".join(traceback.format_stack(sys._getframe(1))[-_SHOWN_FRAMES:])
            waits.append(f"{getattr(owner, '__name__', owner)}.{name} inside atomic\n{stack}")
        return door(*args, **named)

    setattr(owner, name, guarded)
