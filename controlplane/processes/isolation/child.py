"""A function in a forked child: its memory and its time are limited, and it can be ended at once.

The child is a fork, so it needs no import and no copy of its arguments. The kernel limits its
private writable memory (RLIMIT_DATA, docs/decisions/0049-computations-in-children.md); the parent
watches the clock, the memory of all processes that the child has started, and whether the result is
still wanted, and kills the child otherwise.
"""

import gc
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from typing import Any, Final, NoReturn, TypeVar

import psutil
from django.db import connections

from controlplane.processes.isolation.confinement import (
    confine,
    own_bytes,
    peak_bytes,
    resident_bytes,
)
from controlplane.processes.isolation.errors import ChildDied, OutOfMemory, OutOfTime, Unwanted
from controlplane.processes.isolation.leftovers import Leftovers, leftovers
from controlplane.processes.isolation.limits import Limits

Result = TypeVar("Result")

# The interval at which the parent calls `watch`: cancelling takes no longer.
LOOK_S: Final = 0.25
_REPORT_S: Final = 0.1
_KB: Final = 1024


class Reporter:
    """The child's side of a computation: called with its share, it reports the progress."""

    def __init__(self, sender: Any) -> None:
        self._sender = sender
        self._reported_at = 0.0

    def __call__(self, share: float) -> None:
        """Send the share done, ten times a second at most."""
        now = time.monotonic()
        if now - self._reported_at >= _REPORT_S:
            self._reported_at = now
            self._sender.send(("progress", share))

    def emit(self, part: Any) -> None:
        """Send a part of the result to the parent's `receive`."""
        self._sender.send(("part", part))


def run_in_child(
    compute: Callable[[Reporter], Result],
    limits: Limits,
    watch: Callable[[float], bool] = lambda _: True,
    receive: Callable[[Any], None] = lambda _: None,
) -> Result:
    """Return the result of `compute`, which a forked child calculates at a lower priority.

    `compute` gets a reporter of progress; `receive` is called with the parts that it emits. Every
    quarter of a second `watch` is called in this process with the newest share; if it returns
    False, or an exception reaches this function, the child is killed with its descendants. Call it
    in the main thread: the child ends with the thread that started it. Raises `Unwanted`,
    `OutOfMemory`, `OutOfTime`, `ChildDied`, and what `compute` raises.
    """
    started = looked = time.monotonic()
    share = 0.0
    with leftovers() as left, _forked(compute, limits, left) as child:
        while True:
            if child.has_message():
                kind, value = child.message()
                if kind == "part":
                    receive(value)
                elif kind == "progress":
                    share = value
                else:
                    result: Result = child.result(kind, value)
                    return result
            now = time.monotonic()
            if now - started > limits.seconds:
                raise OutOfTime(now - started, limits.seconds)
            if now - looked >= LOOK_S:
                looked = now
                child.check_family()
                if not watch(share):
                    raise Unwanted


@dataclass(frozen=True)
class _Child:
    """The parent's side of a child: its process and the pipe of its messages."""

    pid: int
    receiver: Any
    limits: Limits
    leftovers: Leftovers

    def has_message(self) -> bool:
        """Wait for a message, or the end of the child, for the interval of `watch` at most."""
        if self.receiver.poll(LOOK_S):
            return True
        # A fork of the child may keep the pipe open after its end.
        state = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.pid, state) is not None

    def message(self) -> tuple[str, Any]:
        """Return the next message. Raises `OutOfMemory`, `ChildDied` if the child has ended."""
        try:
            if not self.receiver.poll():
                raise EOFError
            message: tuple[str, Any] = self.receiver.recv()
        except (EOFError, OSError):
            raise self._death() from None
        return message

    def result(self, kind: str, value: Any) -> Any:
        """Return the value of the last message, or raise its error."""
        if kind == "memory":
            raise OutOfMemory(value, self.limits.memory_bytes)
        if kind == "error":
            raise value
        return value

    def check_family(self) -> None:
        """Raise `OutOfMemory` if what the child started has more memory together than its limit.

        The kernel limits each process alone.
        """
        with suppress(psutil.Error):
            family = psutil.Process(self.pid).children(recursive=True)
            used = sum(own_bytes(process.pid) for process in family)
            if used > self.limits.memory_bytes:
                raise OutOfMemory(used, self.limits.memory_bytes)

    def _death(self) -> Exception:
        """Return the reason why the child ended without a result.

        Libraries abort where an allocation fails; the kernel kills where the machine has no memory.
        """
        _, status, usage = os.wait4(self.pid, 0)
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        peak = usage.ru_maxrss * _KB
        short = number == signal.SIGABRT and peak > self.limits.memory_bytes / 2
        if number == signal.SIGKILL or short:
            return OutOfMemory(peak, self.limits.memory_bytes)
        return ChildDied(number)

    def end(self) -> None:
        """Kill the child with its descendants, and collect it."""
        self.leftovers.end_processes(self.pid)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


@contextmanager
def _forked(
    compute: Callable[[Reporter], Any], limits: Limits, left: Leftovers
) -> Iterator[_Child]:
    receiver, sender = Pipe(duplex=False)
    # Or the child would write the buffered text once more.
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    # Callbacks of a fork print and lose an exception such as KeyboardInterrupt.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    pid = os.fork()
    if pid == 0:
        _run(lambda progress: _adopted(compute, left, progress), limits, sender, parent)
    child = _Child(pid, receiver, limits, left)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        sender.close()
        yield child
    finally:
        receiver.close()
        child.end()


def _adopted(compute: Callable[[Reporter], Any], left: Leftovers, progress: Reporter) -> Any:
    left.adopt()
    return compute(progress)


def _run(compute: Callable[[Reporter], Any], limits: Limits, sender: Any, parent: int) -> NoReturn:
    """Compute in the child, send the result, and end the process without any clean-up."""
    # Objects that exist already stay shared: the collector of the child does not write to them. Not
    # in the parent, where `gc.unfreeze` would also release what was frozen at its start.
    gc.freeze()
    try:
        # The connections belong to the parent: the child neither uses nor closes them.
        kept = [connections[name] for name in connections]
        for name in connections:
            del connections[name]
        confine(limits.memory_bytes, sender.fileno(), parent)
        content = _pickled(_message(compute, sender))
        sender.send_bytes(content)
        del kept
    finally:
        os._exit(0)


def _message(compute: Callable[[Reporter], Any], sender: Any) -> tuple[str, Any]:
    before = resident_bytes()
    try:
        return "done", compute(Reporter(sender))
    except MemoryError:
        return "memory", peak_bytes() - before
    except BaseException as error:  # noqa: BLE001 - the parent raises it
        error.add_note("".join(traceback.format_exception(error)))
        return "error", _sendable(error)


def _sendable(error: BaseException) -> BaseException:
    """Return the error, or a `RuntimeError` with its text if the parent could not read it.

    The constructors of some libraries, such as PySpark, do not accept what pickle gives them.
    """
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - written in this process
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - any error of the class
        plain = RuntimeError(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", ()):
            plain.add_note(note)
        return plain
    return error


def _pickled(message: tuple[str, Any]) -> bytes:
    try:
        return pickle.dumps(message)
    except MemoryError:
        return pickle.dumps(("memory", peak_bytes()))
    except Exception as error:  # noqa: BLE001 - any error of the classes of the result
        return pickle.dumps(("error", TypeError(f"{message[1]!r:.500} is not sent: {error}")))
