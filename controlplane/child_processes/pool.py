"""Confined children that stay for many short computations over bytes from outside.

The fork server of multiprocessing imports the libraries once and starts no thread; its forks are
confined, and compute one call after the other. A call that ends its child ends nothing else, and
the next call has a new child. A child answers with bytes, which are never unpickled here. Large
bytes are passed in a file in memory: each socket buffer of them would cost a change of processes.
"""

import gc
import os
import pickle
import signal
import struct
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import Pipe, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.forkserver import (
    _forkserver,
    connect_to_new_process,
    get_inherited_fds,
    read_signed,
    set_forkserver_preload,
)
from threading import BoundedSemaphore
from typing import Any, Final, NoReturn
from weakref import WeakSet

from controlplane.child_processes.confinement import (
    Limits,
    begin,
    confine,
    peak_bytes,
    private_bytes,
)
from controlplane.child_processes.errors import (
    ChildDied,
    ChildFailed,
    NoChild,
    OutOfMemory,
    OutOfTime,
)

# Calls of one child: a leak of a library ends with it.
MAX_CALLS: Final = 1_000
_DONE, _MEMORY, _ERROR = b"d", b"m", b"e"
# The limit by the clock is so many times that of processor time.
_WAITING: Final = 5
# Of an answer: its kind, whether the child takes no further call, and its bytes.
_ANSWER: Final = struct.Struct("<c?Q")
_SIZE: Final = struct.Struct("<Q")
# The file in memory of a child keeps so many bytes between calls.
_KEPT: Final = 4 * 2**20
# The file of a child, which closes all but the standard descriptors and the pipe of its calls.
_FILE: Final = 0
# Before a job that no child has received is sent again (s).
_AGAIN_S: Final = 0.1

Parts = bytes | Sequence[Any]
# What the fork server imports, for the pools of this process.
_PRELOADED: Final = [__name__]
_POOLS: "Final[WeakSet[ChildPool]]" = WeakSet()


class ChildPool:
    """At most `size` children, started when they are needed; threads share the pool.

    `preload`: modules that the fork server imports. `wait_s`: how long a call waits for a child.
    """

    def __init__(
        self, limits: Limits, size: int, preload: Sequence[str], wait_s: float = 10.0
    ) -> None:
        self._limits = limits
        self._size = size
        self._wait_s = wait_s
        _PRELOADED.extend(preload)
        set_forkserver_preload(_PRELOADED)
        self.forget()
        _POOLS.add(self)

    def forget(self) -> None:
        """Forget all children: those of the parent process, after a fork."""
        self._free = BoundedSemaphore(self._size)
        self._idle: list[_Child] = []

    def call(self, compute: Callable[..., Parts], *arguments: Any) -> bytes:
        """Return `compute(*arguments)`, which a child calculates; parts of bytes are joined.

        One argument may be a `PickleBuffer` of bytes, which `compute` gets as bytes.

        Raises `NoChild` if all are busy for too long, `OutOfMemory`, `OutOfTime`, `ChildDied`, and
        `ChildFailed` for whatever `compute` raises.
        """
        large: list[pickle.PickleBuffer] = []
        job = pickle.dumps((compute, arguments), 5, buffer_callback=large.append)
        if not self._free.acquire(timeout=self._wait_s):
            raise NoChild
        try:
            return self._call(job, large)
        except _NotReceived:
            # The fork server has died in this moment.
            time.sleep(_AGAIN_S)
            return self._call(job, large)
        finally:
            self._free.release()

    def _call(self, job: bytes, large: Sequence[pickle.PickleBuffer]) -> bytes:
        child = self._accepting(job, large)
        try:
            return child.answer()
        finally:
            if child.is_last:
                child.close()
            else:
                self._idle.append(child)

    def _accepting(self, job: bytes, large: Sequence[pickle.PickleBuffer]) -> "_Child":
        """Return a child to which a job was sent; idle ones may have been killed."""
        while self._idle:
            child = self._idle.pop()
            with suppress(OSError):
                child.send(job, large)
                return child
            child.close()
        try:
            child = _Child(self._limits)
            child.send(job, large)
        except (OSError, EOFError) as error:
            raise _NotReceived from error
        return child


class _NotReceived(NoChild):
    """No child has received the job, so it may be sent again."""


class _Child:
    """The parent's side of a child: the pipe of its calls, and the pipe of its exit code."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # Unless an answer has another value.
        self.is_last = True
        self._connection, theirs = Pipe()
        self._memory = os.memfd_create("weir-child")
        with theirs:
            self._exit, start = connect_to_new_process([theirs.fileno(), self._memory])
        # No `Process` of multiprocessing: each would import the main module of this process.
        with os.fdopen(start, "wb") as file:
            file.write(pickle.dumps({}) + pickle.dumps(_Service(limits)))
        self.pid = read_signed(self._exit)

    def send(self, job: bytes, large: Sequence[pickle.PickleBuffer]) -> None:
        """Send a job. Raises `OSError` if the child has ended."""
        self.is_last = True
        size = _put(self._memory, [buffer.raw() for buffer in large])
        self._connection.send_bytes(_SIZE.pack(size) + job)

    def answer(self) -> bytes:
        """Return the result of the job, or raise its error."""
        try:
            kind, is_last, size = _ANSWER.unpack(self._connection.recv_bytes(_ANSWER.size))
        except ConnectionResetError as error:
            # The child ended with the job, or a part of it, in its end of the pipe.
            raise _NotReceived from error
        except (EOFError, OSError):
            raise self._death() from None
        self.is_last = bool(is_last)
        content = os.pread(self._memory, min(size, self._limits.memory_bytes), 0)
        if size > _KEPT:
            os.ftruncate(self._memory, 0)
        match kind:
            case b"d":
                return content
            case b"m":
                raise OutOfMemory(int(content), self._limits.memory_bytes)
            case _:
                raise ChildFailed(content.decode("utf-8", "replace"))

    def _death(self) -> Exception:
        """Return the reason why the child ended without an answer."""
        with suppress(OSError, EOFError):
            code = read_signed(self._exit)
            match -code:
                case signal.SIGPROF | signal.SIGALRM:
                    return OutOfTime(self._limits.seconds, self._limits.seconds)
                case signal.SIGKILL:
                    return OutOfMemory(self._limits.memory_bytes, self._limits.memory_bytes)
            return ChildDied(max(-code, 0), max(code, 0))
        # The fork server has ended, and its children with it: the call may be repeated.
        return NoChild()

    def close(self) -> None:
        """Close the pipes, by which the child ends."""
        self._connection.close()
        os.close(self._exit)
        os.close(self._memory)


class _Service:
    """The child's side, which the fork server calls as it calls a `Process`."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def _bootstrap(self, _parent_sentinel: int) -> NoReturn:
        # Objects of the imports stay shared with the fork server.
        gc.freeze()
        descriptors: Any = get_inherited_fds()
        pipe, memory = descriptors
        os.dup2(memory, _FILE)
        connection = Connection(pipe)
        # Requests wait for the result: the child has the priority of its parent.
        begin(os.getppid())
        confine(self._limits.memory_bytes, connection.fileno(), niceness=0)
        most = private_bytes() + self._limits.memory_bytes // 4
        with suppress(EOFError, OSError):
            for left in reversed(range(MAX_CALLS)):
                kind, parts = self._outcome(connection.recv_bytes())
                size = _put(_FILE, parts)
                is_last = not left or kind == _MEMORY or private_bytes() > most
                connection.send_bytes(_ANSWER.pack(kind, is_last, size))
                if is_last:
                    break
        os._exit(0)

    def _outcome(self, job: bytes) -> tuple[bytes, Sequence[Any]]:
        # By default the signals end the process, whatever it does. The limit is processor time, so
        # that a busy machine refuses nothing; a process that waits for ever takes none.
        signal.setitimer(signal.ITIMER_PROF, self._limits.seconds)
        signal.setitimer(signal.ITIMER_REAL, _WAITING * self._limits.seconds)
        try:
            large = os.pread(_FILE, _SIZE.unpack_from(job)[0], 0)
            compute, arguments = pickle.loads(job[_SIZE.size :], buffers=[large])  # noqa: S301
            result = compute(*arguments)
            return _DONE, [result] if isinstance(result, bytes) else result
        except MemoryError:
            return _MEMORY, [str(peak_bytes()).encode()]
        except BaseException as error:  # noqa: BLE001 - the parent raises it
            text = "".join(traceback.format_exception(error))
            return _ERROR, [text.encode("utf-8", "replace")]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)


def _put(file: int, parts: Sequence[Any]) -> int:
    """Write parts from the beginning of a file, and return their bytes."""
    size = sum(len(memoryview(part)) for part in parts)
    # A file in memory takes all of it at once.
    if size and os.pwritev(file, parts, 0) < size:
        raise MemoryError
    return size


def _forget_parent() -> None:
    """Let a fork of this process have a fork server and children of its own."""
    trackers: tuple[Any, ...] = (_forkserver, resource_tracker._resource_tracker)  # noqa: SLF001
    for tracker in trackers:
        vars(tracker).update(vars(type(tracker)()))
    set_forkserver_preload(_PRELOADED)
    for pool in _POOLS:
        pool.forget()


os.register_at_fork(after_in_child=_forget_parent)
