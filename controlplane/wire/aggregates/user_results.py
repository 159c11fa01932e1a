"""The last step of users' aggregates: their `merge` and `result`, in a separate process.

The sink calls them when a window changes, and previews do. Code that may loop, use much memory or
end its process runs in a child of a pool, under the limits of the data plane for users' code
(`limits.py`). A call that no signal interrupts ends its child.
"""

import importlib
import os
import pickle
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from controlplane.child_processes.confinement import Limits
from controlplane.child_processes.errors import ChildDied, ChildFailed, OutOfMemory, OutOfTime
from controlplane.child_processes.pool import ChildPool
from controlplane.wire.language.registered import MODULES, registered_aggregate
from controlplane.wire.limits import (
    TimeLimit,
    call_seconds,
    limit_memory,
    time_limit,
    worker_memory,
)

# The least limit of an aggregate that exceeds its limit repeatedly (s).
_LEAST_S: Final = 0.1
# For a child's imports, on a busy machine (s).
_START_S: Final = 60.0
# Calls at once; further ones wait.
_CHILDREN: Final = 8
# Kinds of answers: a value, why there is none, and why there is none in time.
_VALUE: Final = "value"
_ERROR: Final = "error"
_LATE: Final = "late"
# A call that no signal interrupts ends its process so much later (s), with this exit code.
_LATER_S: Final = 1.0
_ENDED: Final = 1
_BEGAN: Final = struct.Struct("<d")
# Bytes of one answer.
_LARGEST: Final = 1 << 20
_STDOUT: Final = 1
# Letters of the error of a call.
_LONGEST: Final = 1_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one window: its value, or an error."""

    value: Any = None
    error: str = ""


def user_results(
    name: str, windows: Sequence[Sequence[bytes]], page_s: float | None = None
) -> list[Outcome]:
    """Return the results of a user's aggregate for each window, in order.

    A window has the time limit of a call. Once a window has exceeded it or ended its process, none
    starts more than `page_s` seconds (by default the limit of a call) after the first. A window
    whose process ends is called in another one, as the machine may have killed it; it has the error
    after the second end. The limit of an aggregate that exceeds it or ends its processes is halved
    for the next call of this process, and doubled after a call without error. Raises `NoChild`.
    """
    if not windows:
        return []
    started, limit_s, blamed = time.monotonic(), _limit_of(name), False
    page_s = limit_s if page_s is None else page_s
    result: list[Outcome] = []
    for states in windows:
        if blamed and time.monotonic() - started >= page_s:
            break
        outcome, guilty, began = _outcome_of(name, states, limit_s)
        # The imports of a child are not time of the page.
        started = started if result else began
        result.append(outcome)
        blamed |= guilty
    _adjust_limit(name, blamed=blamed)
    late = Outcome(error=f"no time was left for it after {page_s:g} s")
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
            content = _children().call(_answer_of, modules, name, list(states), limit_s)
        except OutOfMemory:
            how = "signal 9"
        except ChildFailed as error:
            how = str(error)[-_LONGEST:]
        except OutOfTime:
            return late, True, started
        except ChildDied as died:
            if died.exit_code == _ENDED and time.monotonic() - started > limit_s + _LATER_S:
                return late, True, started
            how = f"signal {died.number}" if died.number else f"code {died.exit_code}"
        else:
            kind, value = _read(content[_BEGAN.size :])
            outcome = Outcome(value) if kind == _VALUE else Outcome(error=value)
            return outcome, kind == _LATE, _BEGAN.unpack_from(content)[0]
    return Outcome(error=f"ended its process ({how})"), True, started


def _read(content: bytes) -> tuple[str, Any]:
    try:
        kind, value = pickle.loads(content)  # noqa: S301 - from our own child
    except Exception as error:  # noqa: BLE001 - a value of a class that only the child has
        return _ERROR, f"returned a value that cannot be read: {error}"
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
    return ChildPool(limits, _CHILDREN, [__name__])


def _answer_of(modules: Sequence[str], name: str, states: Sequence[bytes], limit_s: float) -> bytes:
    """Return the start of the call of a window (monotonic s), and its kind and value, pickled.

    `modules` are imported before. Runs in a child, as what it calls does.
    """
    _prepare(tuple(modules))
    return _BEGAN.pack(time.monotonic()) + _answer(name, states, limit_s)


def _answer(name: str, states: Sequence[bytes], limit_s: float) -> bytes:
    try:
        with time_limit(limit_s, end_after_s=limit_s + _LATER_S):
            result = pickle.dumps((_VALUE, _value(name, states)))
    except TimeLimit as late:
        return pickle.dumps((_LATE, str(late)))
    except BaseException as error:  # noqa: BLE001 - of users' code; the process continues
        return pickle.dumps((_ERROR, f"raised {type(error).__name__}: {error}"[: _LARGEST // 8]))
    if len(result) > _LARGEST:
        return pickle.dumps(
            (_ERROR, f"returned {len(result):,} bytes; at most {_LARGEST:,} are kept")
        )
    return result


@cache
def _prepare(modules: tuple[str, ...]) -> None:
    """Limit the memory of this process, once, and import modules."""
    limit_memory()
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device
        # What users' code prints is nobody's log.
        os.dup2(nowhere.fileno(), _STDOUT)
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 - of users' code; its aggregate is then unknown
            print(f"{module} cannot be imported: {error!r}", file=sys.stderr)  # noqa: T201 - a log


def _value(name: str, states: Sequence[bytes]) -> Any:
    known = registered_aggregate(name)
    if known is None:
        raise LookupError(f"no module registers the aggregate {name}")
    state = states[0]
    for other in states[1:]:
        state = known.work.merge(state, other)
    return known.work.result(state)
