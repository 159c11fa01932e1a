"""A function in a forked child: its memory and its time are limited, and it can be ended at once.

The child is a fork, so it needs no import and no copy of its arguments. The kernel limits its
private writable memory (RLIMIT_DATA, docs/decisions/0049-computations-in-children.md); the parent
watches the clock, the memory of all processes that the child has started, and whether the result is
still wanted, and kills the child otherwise.
"""

import pickle
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

import psutil
from django.db import connections

from controlplane.child_processes.confinement import (
    Limits,
    confine,
    own_bytes,
    peak_bytes,
    resident_bytes,
)
from controlplane.child_processes.errors import ChildDied, OutOfMemory, OutOfTime, Unwanted
from controlplane.child_processes.fork import Fork, forked
from controlplane.child_processes.leftovers import Leftovers, leftovers

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
    with _child(compute, limits) as child:
        for kind, value in child.messages():
            if kind == "part":
                receive(value)
            elif kind == "progress":
                share = value
            elif kind:
                break
            now = time.monotonic()
            if now - started > limits.seconds:
                raise OutOfTime(now - started, limits.seconds)
            if now - looked >= LOOK_S:
                looked = now
                child.check_family()
                if not watch(share):
                    raise Unwanted
        result: Result = child.result(kind, value)
        return result


class _Child:
    """The parent's side of a child, with its limits."""

    def __init__(self, fork: Fork, limits: Limits) -> None:
        self._fork = fork
        self._limits = limits

    def messages(self) -> Iterator[tuple[str, Any]]:
        """Yield the messages, and one of the kind "" in each interval of `watch` without one.

        Raises `OutOfMemory` and `ChildDied` at the end of the child.
        """
        while True:
            try:
                yield self._fork.message(LOOK_S)
            except TimeoutError:
                yield "", None
            except (EOFError, OSError):
                raise self._death() from None

    def result(self, kind: str, value: Any) -> Any:
        """Return the value of the last message, or raise its error."""
        if kind == "memory":
            raise OutOfMemory(value, self._limits.memory_bytes)
        if kind == "error":
            raise value
        return value

    def check_family(self) -> None:
        """Raise `OutOfMemory` if what the child started has more memory together than its limit.

        The kernel limits each process alone.
        """
        with suppress(psutil.Error):
            family = psutil.Process(self._fork.pid).children(recursive=True)
            used = sum(own_bytes(process.pid) for process in family)
            if used > self._limits.memory_bytes:
                raise OutOfMemory(used, self._limits.memory_bytes)

    def _death(self) -> Exception:
        """Return the reason why the child ended without a result.

        Libraries abort where an allocation fails; the kernel kills where the machine has no memory.
        """
        number = max(0, -self._fork.end(self._limits.seconds))
        peak = self._fork.usage.ru_maxrss * _KB if self._fork.usage else 0
        short = number == signal.SIGABRT and peak > self._limits.memory_bytes / 2
        if number == signal.SIGKILL or short:
            return OutOfMemory(peak, self._limits.memory_bytes)
        return ChildDied(number)


@contextmanager
def _child(compute: Callable[[Reporter], Any], limits: Limits) -> Iterator[_Child]:
    with leftovers() as left, forked(partial(_run, compute, limits, left)) as fork:
        try:
            yield _Child(fork, limits)
        finally:
            left.end_processes(fork.pid)


def _run(compute: Callable[[Reporter], Any], limits: Limits, left: Leftovers, sender: Any) -> None:
    """Compute in the child, and send the result."""
    # The connections belong to the parent: the child neither uses nor closes them.
    kept = [connections[name] for name in connections]
    for name in connections:
        del connections[name]
    confine(limits.memory_bytes, sender.fileno())
    left.adopt()
    sender.send_bytes(_pickled(_message(compute, sender)))
    del kept


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
