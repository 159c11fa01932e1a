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

from controlplane.processes.confinement import Limits
from controlplane.processes.errors import ChildDied, ChildFailed, NoChild, OutOfMemory, OutOfTime
from controlplane.processes.pool import ChildPool
from controlplane.wire.aggregates.user_results_process import (
    BEGAN,
    ENDED,
    ERROR,
    LATE,
    LATER_S,
    VALUE,
    answer,
)
from controlplane.wire.language.registered import MODULES, registered_aggregate
from controlplane.wire.limits import call_seconds, worker_memory

logger = logging.getLogger(__name__)

# The least limit of an aggregate that exceeds its limit repeatedly (s).
_LEAST_S: Final = 0.1
# For a child's imports, on a busy machine (s).
_START_S: Final = 60.0
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
    page_s = limit_s if page_s is None else page_s
    result: list[Outcome] = []
    for states in windows:
        if result and time.monotonic() - started >= page_s:
            break
        try:
            outcome, guilty, began = _outcome_of(name, states, limit_s)
        except NoChild as error:
            logger.warning("no process for %s: %r", name, error)
            break
        # The imports of a child are no time of the page.
        started = started if result else began
        result.append(outcome)
        blamed |= guilty
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


def _outcome_of(name: str, states: Sequence[bytes], limit_s: float) -> tuple[Outcome, bool, float]:
    """Return the result of a window, whether it is to blame for its time or end, and its start.

    Raises `NoChild`.
    """
    how, started, modules = "", 0.0, _modules(name)
    late = Outcome(error=f"took longer than {limit_s:g} s")
    for _ in range(2):
        started = time.monotonic()
        try:
            content = _children().call(answer, modules, name, list(states), limit_s)
        except OutOfMemory:
            how = "signal 9"
        except ChildFailed as error:
            how = str(error)[-_LONGEST:]
        except OutOfTime:
            return late, True, started
        except ChildDied as died:
            if died.exit_code == ENDED and time.monotonic() - started > limit_s + LATER_S:
                return late, True, started
            how = f"signal {died.number}" if died.number else f"code {died.exit_code}"
        else:
            kind, value = _read(content[BEGAN.size :])
            outcome = Outcome(value) if kind == VALUE else Outcome(error=value)
            return outcome, kind == LATE, BEGAN.unpack_from(content)[0]
    return Outcome(error=f"ended its process ({how})"), True, started


def _read(content: bytes) -> tuple[str, Any]:
    try:
        kind, value = pickle.loads(content)  # noqa: S301 - from our own child
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
    limits = Limits(worker_memory(), _START_S + 2 * call_seconds())
    return ChildPool(limits, _CHILDREN, ["controlplane.wire.aggregates.user_results_process"])
