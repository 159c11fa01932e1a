"""The last step of users' aggregates: their `merge` and `result`, in a separate process.

Readers are web and Celery processes with threads, which no signal interrupts. So code that may
loop, use much memory or end its process runs in a child (`user_results_process.py`), under the
limits of the data plane for users' code (`limits.py`); a child that exceeds them is ended.
"""

import logging
import os
import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from controlplane.processes.errors import ChildEnded, ChildFailed, NoChild, OutOfMemory
from controlplane.processes.limits import Limits
from controlplane.processes.pool import ChildPool
from controlplane.wire.aggregates.user_results_process import ERROR, LATE, VALUE, answers
from controlplane.wire.language.registered import MODULES, registered_aggregate
from controlplane.wire.limits import call_seconds, worker_memory

logger = logging.getLogger(__name__)

# For a child's imports, on a busy machine (s).
_START_S: Final = 60.0
# The child ends itself a second after a limit; after this time it is killed (s).
_GRACE_S: Final = 3.0
# The least limit of an aggregate that exceeds its limit repeatedly (s).
_LEAST_S: Final = 0.1
# The limit of a call of many windows, if all others fail (s).
_LAST_S: Final = 3600.0
# Calls at once; further ones wait.
_CHILDREN: Final = 8
# Letters of the error of a call.
_LONGEST: Final = 1_000


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
    call = _modules(name), name, limit_s, page_s, list(windows)
    guilty, heard = False, time.monotonic()
    try:
        for answer in _children().stream(_START_S, limit_s + _GRACE_S, answers, *call):
            if answer:
                kind, value = _read(answer)
                result.append(Outcome(value) if kind == VALUE else Outcome(error=value))
                guilty |= kind == LATE
            heard = time.monotonic()
    except NoChild as error:
        logger.warning("no process for %s: %r", name, error)
    except ChildEnded as ended:
        if time.monotonic() - heard < limit_s:
            how = f"{'signal' if ended.code < 0 else 'code'} {abs(ended.code)}"
            return result, guilty, f"ended its process ({how})"
        return [*result, Outcome(error=f"took longer than {limit_s:g} s")], True, ""
    except (ChildFailed, OutOfMemory) as error:
        return result, guilty, f"ended its call ({error})"[:_LONGEST]
    return result, guilty, ""


def _read(answer: bytes) -> tuple[str, Any]:
    try:
        kind, value = pickle.loads(answer)  # noqa: S301 - from our own child
    except Exception as error:  # noqa: BLE001 - a value of a class that only the child has
        return ERROR, f"returned a value that cannot be read: {error}"
    return kind, value


def _modules(name: str) -> list[str]:
    """Return the modules to import: those of the site, and the one that registers the aggregate."""
    known = registered_aggregate(name)
    own = [type(known.work).__module__] if known else []
    return [*filter(None, map(str.strip, os.environ.get(MODULES, "").split(","))), *own]


@cache
def _children() -> ChildPool:
    # It limits itself, to a lower limit of the same number.
    limits = Limits(worker_memory(), _LAST_S)
    return ChildPool(limits, _CHILDREN, ["controlplane.wire.aggregates.user_results_process"])
