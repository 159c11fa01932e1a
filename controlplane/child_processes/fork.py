"""A forked child of this process, and the pipe of its messages.

A fork needs no import and no copy of its arguments; it ends with the thread that forked it. What it
does cannot harm this process: its parent reads messages, and ends it whenever it likes.
"""

import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from resource import struct_rusage
from typing import Any, Final, NoReturn

from controlplane.child_processes.confinement import begin

logger = logging.getLogger(__name__)

# The exit code of a child whose work raised an exception.
_FAILED: Final = 3
# Between two looks whether a child has ended (s).
_LOOK_S: Final = 0.005


class Fork:
    """The parent's side of a child. `usage`: what the child used, once it has ended."""

    def __init__(self, pid: int, receiver: Any) -> None:
        self.pid = pid
        self.usage: struct_rusage | None = None
        self._receiver = receiver
        self._code = 0

    def message(self, seconds: float) -> Any:
        """Return the next message of the child.

        Raises `TimeoutError` if none arrives in so many seconds, `EOFError` and `OSError` if none
        will: the child, or its end of the pipe, is gone.
        """
        if not self._receiver.poll(seconds):
            # A fork of the child may keep the pipe open after its end.
            state = os.WEXITED | os.WNOHANG | os.WNOWAIT
            if os.waitid(os.P_PID, self.pid, state) is None:
                raise TimeoutError
            if not self._receiver.poll():
                raise EOFError
        return self._receiver.recv()

    def end(self, seconds: float = 0.0) -> int:
        """Wait so long for the end of the child, kill it otherwise; return its exit code.

        The code of a signal is negative.
        """
        self._receiver.close()
        stop = time.monotonic() + seconds
        while self.usage is None and time.monotonic() < stop:
            if not self._collect(os.WNOHANG):
                time.sleep(_LOOK_S)
        if self.usage is None:
            os.kill(self.pid, signal.SIGKILL)
            self._collect(0)
        return self._code

    def _collect(self, options: int) -> bool:
        pid, status, usage = os.wait4(self.pid, options)
        if pid:
            self.usage, self._code = usage, os.waitstatus_to_exitcode(status)
        return bool(pid)


@contextmanager
def forked(work: Callable[[Any], object]) -> Iterator[Fork]:
    """Fork a child that calls `work` with the sender of its messages; kill it after the block.

    It ends without any clean-up, with code 0, or 3 if `work` raises.
    """
    receiver, sender = Pipe(duplex=False)
    # Or the child would write the buffered text once more.
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    # Callbacks of a fork print and lose an exception such as KeyboardInterrupt.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    pid = os.fork()
    if pid == 0:
        receiver.close()
        _run(work, sender, parent)
    child = Fork(pid, receiver)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        sender.close()
        yield child
    finally:
        child.end()


def _run(work: Callable[[Any], object], sender: Any, parent: int) -> NoReturn:
    code = _FAILED
    try:
        # Objects that exist already stay shared: the collector of the child does not write to them.
        # Not in the parent, where `gc.unfreeze` would also release what was frozen at its start.
        gc.freeze()
        begin(parent)
        work(sender)
        code = 0
    except BaseException:
        logger.exception("A child failed")
    finally:
        os._exit(code)
