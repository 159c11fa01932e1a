"""Confined children that stay for many short computations over bytes from outside.

The fork server of multiprocessing imports the libraries once and starts no thread; its forks are
confined, and compute one call after the other. A call that ends its child ends nothing else, and
the next call has a new child. A child answers with bytes, which are never unpickled here.
"""

import gc
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.forkserver import (
    connect_to_new_process,
    get_inherited_fds,
    read_signed,
    set_forkserver_preload,
)
from threading import BoundedSemaphore
from typing import Any, Final, NoReturn

from controlplane.isolation.confinement import confine, peak_bytes, private_bytes
from controlplane.isolation.errors import ChildDied, ChildFailed, NoChild, OutOfMemory, OutOfTime
from controlplane.isolation.limits import Limits

# Calls of one child: a leak of a library ends with it.
MAX_CALLS: Final = 1_000
_DONE, _MEMORY, _ERROR = b"done", b"memory", b"error"
# After the kind of an answer, of a child that takes no further call.
_LAST: Final = b"!"
_MAX_KIND: Final = 16


class ChildPool:
    """At most `size` children, started when they are needed; threads share the pool.

    `preload`: modules that the fork server imports. `wait_s`: how long a call waits for a child.
    """

    def __init__(
        self, limits: Limits, size: int, preload: Sequence[str], wait_s: float = 10.0
    ) -> None:
        self._limits = limits
        self._wait_s = wait_s
        self._free = BoundedSemaphore(size)
        self._idle: list[_Child] = []
        set_forkserver_preload([__name__, *preload])

    def call(self, compute: Callable[..., bytes], *arguments: Any) -> bytes:
        """Return `compute(*arguments)`, which a child calculates.

        Raises `NoChild` if all are busy for too long, `OutOfMemory`, `OutOfTime`, `ChildDied`, and
        `ChildFailed` for whatever `compute` raises.
        """
        job = pickle.dumps((compute, arguments), pickle.HIGHEST_PROTOCOL)
        if not self._free.acquire(timeout=self._wait_s):
            raise NoChild
        try:
            return self._call(job)
        finally:
            self._free.release()

    def _call(self, job: bytes) -> bytes:
        child = self._accepting(job)
        try:
            return child.answer()
        finally:
            if child.is_last:
                child.close()
            else:
                self._idle.append(child)

    def _accepting(self, job: bytes) -> "_Child":
        """Return a child that has received a job; idle ones may have been killed."""
        while self._idle:
            child = self._idle.pop()
            with suppress(OSError):
                child.send(job)
                return child
            child.close()
        try:
            child = _Child(self._limits)
            child.send(job)
        except (OSError, EOFError) as error:
            raise NoChild from error
        return child


class _Child:
    """The parent's side of a child: the pipe of its calls, and the pipe of its exit code."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # Until an answer says otherwise.
        self.is_last = True
        self._connection, theirs = Pipe()
        with theirs:
            self._exit, start = connect_to_new_process([theirs.fileno()])
        # No `Process` of multiprocessing: each would import the main module of this process.
        with os.fdopen(start, "wb") as file:
            file.write(pickle.dumps({}) + pickle.dumps(_Service(limits)))
        read_signed(self._exit)

    def send(self, job: bytes) -> None:
        """Send a job. Raises `OSError` if the child has ended."""
        self.is_last = True
        self._connection.send_bytes(job)

    def answer(self) -> bytes:
        """Return the result of the job, or raise its error."""
        try:
            kind = self._connection.recv_bytes(_MAX_KIND)
            content = self._connection.recv_bytes(self._limits.memory_bytes)
        except (EOFError, OSError):
            raise self._death() from None
        self.is_last = kind.endswith(_LAST)
        match kind.removesuffix(_LAST):
            case b"done":
                return content
            case b"memory":
                raise OutOfMemory(int(content), self._limits.memory_bytes)
            case _:
                raise ChildFailed(content.decode("utf-8", "replace"))

    def _death(self) -> Exception:
        """Return the reason why the child ended without an answer."""
        with suppress(OSError, EOFError):
            match -read_signed(self._exit):
                case signal.SIGALRM:
                    return OutOfTime(self._limits.seconds, self._limits.seconds)
                case signal.SIGKILL:
                    return OutOfMemory(self._limits.memory_bytes, self._limits.memory_bytes)
                case number:
                    return ChildDied(max(number, 0))
        return ChildDied(0)

    def close(self) -> None:
        """Close the pipes, by which the child ends."""
        self._connection.close()
        os.close(self._exit)


class _Service:
    """The child's side, which the fork server calls as it calls a `Process`."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def _bootstrap(self, _parent_sentinel: int) -> NoReturn:
        # Objects of the imports stay shared with the fork server.
        gc.freeze()
        connection = Connection(get_inherited_fds()[0])
        # Requests wait for the result: the child has the priority of its parent.
        confine(self._limits.memory_bytes, connection.fileno(), os.getppid(), niceness=0)
        most = private_bytes() + self._limits.memory_bytes // 4
        with suppress(EOFError, OSError):
            for left in reversed(range(MAX_CALLS)):
                kind, content = self._outcome(connection.recv_bytes())
                is_last = not left or kind == _MEMORY or private_bytes() > most
                connection.send_bytes(kind + (_LAST if is_last else b""))
                connection.send_bytes(content)
                if is_last:
                    break
        os._exit(0)

    def _outcome(self, job: bytes) -> tuple[bytes, bytes]:
        # By default the signal ends the process, whatever it does.
        signal.setitimer(signal.ITIMER_REAL, self._limits.seconds)
        try:
            compute, arguments = pickle.loads(job)  # noqa: S301 - written by the parent
            return _DONE, compute(*arguments)
        except MemoryError:
            return _MEMORY, str(peak_bytes()).encode()
        except BaseException as error:  # noqa: BLE001 - the parent raises it
            return _ERROR, "".join(traceback.format_exception(error)).encode("utf-8", "replace")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
