"""The last step of users' aggregates: their `merge` and `result`, in a separate process.

Readers are web and Celery processes with threads, which no signal interrupts. So code that may
loop, use much memory or end its process runs in a child (`user_results_process.py`), under the
limits of the data plane for users' code (`limits.py`); a child that exceeds them is ended.
"""

import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Pipe
from typing import Any, Final

from controlplane.wire.aggregates.user_results_process import ERROR, LARGEST, LATE, VALUE
from controlplane.wire.language.registered import MODULES, registered_aggregate
from controlplane.wire.limits import call_seconds

logger = logging.getLogger(__name__)

# For a child's imports, on a busy machine (s).
_START_S: Final = 60.0
# The child ends itself a second after a limit; after this time it is killed (s).
_GRACE_S: Final = 3.0
# The least limit of an aggregate that exceeds its limit repeatedly (s).
_LEAST_S: Final = 0.1
# Idle children that wait for the next call; others end after their call.
_IDLE: Final = 1
# Bytes of an answer beside its value.
_FRAME: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one window: its value, or an error.

    `attempted`: False if the time was over before the window, so that another call may compute it.
    """

    value: Any = None
    error: str = ""
    attempted: bool = True


def user_results(
    name: str, windows: Sequence[Sequence[bytes]], page_s: float | None = None
) -> list[Outcome]:
    """Return the results of a user's aggregate for each window, in order.

    A window has the time limit of a call. No window starts more than `page_s` seconds (by default
    the limit of a call) after the first. A window whose process ends is called in another one, as
    the machine may have killed it; it has the error after the second end. The limit of an aggregate
    that exceeds it or ends its processes is halved for the next call of this process, and doubled
    after a call without error.
    """
    if not windows:
        return []
    started, limit_s, blamed = time.monotonic(), _limit_of(name), False
    rest_s = page_s = limit_s if page_s is None else page_s
    result: list[Outcome] = []
    suspect = None
    while len(result) < len(windows) and (not result or rest_s > 0):
        some, guilty, ended = _call_child(name, windows[len(result) :], limit_s, max(0.0, rest_s))
        result += some
        if ended and suspect == len(result):
            result, guilty = [*result, Outcome(error=ended)], True
        elif ended:
            suspect = len(result)
        elif not some:
            break
        blamed |= guilty
        rest_s = page_s - (time.monotonic() - started)
    _adjust_limit(name, blamed=blamed)
    late = Outcome(error=f"no time was left for it after {page_s:g} s", attempted=False)
    return result + [late] * (len(windows) - len(result))


# The limits (s) of aggregates that have exceeded theirs in this process.
_LIMITS: dict[str, float] = {}


def _limit_of(name: str) -> float:
    return min(_LIMITS.get(name, call_seconds()), call_seconds())


def _adjust_limit(name: str, *, blamed: bool) -> None:
    if blamed:
        _LIMITS[name] = max(min(_LEAST_S, call_seconds()), _limit_of(name) / 2)
    elif name in _LIMITS:
        _LIMITS[name] *= 2


def _call_child(
    name: str, windows: Sequence[Sequence[bytes]], limit_s: float, page_s: float
) -> tuple[list[Outcome], bool, str]:
    """Return a child's answers, whether a window exceeded its time, and how the child ended.

    The child ended ("" if it did not) at the window after the answers. Without a child there is
    none.
    """
    result: list[Outcome] = []
    try:
        child = _take_child()
    except (OSError, EOFError) as error:
        logger.warning("no process for %s: %s", name, error)
        return result, False, ""
    guilty, heard = False, time.monotonic()
    try:
        for kind, value in child.answers((_modules(name), name, limit_s, page_s, list(windows))):
            result.append(Outcome(value) if kind == VALUE else Outcome(error=value))
            guilty |= kind == LATE
            heard = time.monotonic()
    except (OSError, EOFError):
        ended, waited_s = child.end(), time.monotonic() - heard
        if waited_s < limit_s:
            return result, guilty, ended
        return [*result, Outcome(error=f"took longer than {limit_s:g} s")], True, ""
    _return_child(child)
    return result, guilty, ""


def _modules(name: str) -> list[str]:
    """Return the modules to import: those of the site, and the one that registers the aggregate."""
    known = registered_aggregate(name)
    own = [type(known.work).__module__] if known else []
    return [*filter(None, map(str.strip, os.environ.get(MODULES, "").split(","))), *own]


class _Child:
    """A process that calls users' aggregates, and the connection to it."""

    def __init__(self) -> None:
        """Start it. Raises `OSError` if it cannot start, `EOFError` where it ends immediately."""
        self._ours, theirs = Pipe()
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(  # noqa: S603 - our own command line
                [
                    sys.executable,
                    "-m",
                    "controlplane.wire.aggregates.user_results_process",
                    str(number),
                ],
                pass_fds=[number],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        try:
            self._receive(_START_S)
        except (OSError, EOFError):
            self.end()
            raise

    def is_alive(self) -> bool:
        """Return whether it can take a call."""
        return self._process.poll() is None

    def answers(self, call: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
        """Send a call and yield kind and value of each answer. Raises `EOFError`, `OSError`."""
        limit_s = call[2]
        self._ours.send(call)
        self._receive(_START_S)
        while (answer := self._receive(limit_s + _GRACE_S)) is not None:
            yield answer

    def end(self) -> str:
        """End the process and return how it ended."""
        self._ours.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        if self._process.poll() is None:
            self._process.kill()
        code = self._process.wait()
        return f"ended its process ({'signal' if code < 0 else 'code'} {abs(code)})"

    def _receive(self, seconds: float) -> Any:
        if not self._ours.poll(seconds):
            raise EOFError(f"no answer within {seconds:.0f} s")
        answer = self._ours.recv_bytes(LARGEST + _FRAME)
        try:
            return pickle.loads(answer)  # noqa: S301 - from our own child
        except Exception as error:  # noqa: BLE001 - a value of a class that only the child has
            return ERROR, f"returned a value that cannot be read: {error}"


_lock = threading.Lock()
_waiting: list[_Child] = []


def _take_child() -> _Child:
    with _lock:
        known = _waiting.pop() if _waiting else None
    if known is not None and not known.is_alive():
        known.end()
        known = None
    return known or _Child()


def _return_child(child: _Child) -> None:
    with _lock:
        if len(_waiting) < _IDLE:
            _waiting.append(child)
            return
    child.end()


def _forget_children() -> None:
    """Forget the children of the parent process after a fork."""
    global _lock  # noqa: PLW0603 - another thread may have held it at the fork
    _lock = threading.Lock()
    _waiting.clear()


os.register_at_fork(after_in_child=_forget_children)
