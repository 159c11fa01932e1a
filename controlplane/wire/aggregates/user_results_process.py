"""What a child does for `user_results`: it calls a user's aggregate for one window after the other.

A call that no signal interrupts ends it.
"""

import importlib
import os
import pickle
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from controlplane.wire.language.registered import registered_aggregate
from controlplane.wire.limits import TimeLimit, limit_memory, time_limit

# Kinds of answers: a value, why there is none, and why there is none in time.
VALUE: Final = "value"
ERROR: Final = "error"
LATE: Final = "late"
# Bytes of one answer.
LARGEST: Final = 1 << 20
_STDOUT: Final = 1


def answers(
    modules: Sequence[str],
    name: str,
    limit_s: float,
    page_s: float,
    windows: Sequence[Sequence[bytes]],
) -> Iterator[bytes]:
    """Yield b"" when all modules are imported, and then kind and value of each window, pickled."""
    limit_memory()
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device
        # What users' code prints is nobody's log.
        os.dup2(nowhere.fileno(), _STDOUT)
    _import(modules)
    yield b""
    started = time.monotonic()
    for number, states in enumerate(windows):
        if number and time.monotonic() - started >= page_s:
            break
        yield _answer(name, states, limit_s)


def _import(modules: Sequence[str]) -> None:
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 - of users' code; its aggregate is then unknown
            print(f"{module} cannot be imported: {error!r}", file=sys.stderr)  # noqa: T201 - a log


def _answer(name: str, states: Sequence[bytes], limit_s: float) -> bytes:
    """Return kind and value of a window, pickled."""
    try:
        with time_limit(limit_s, end_after_s=limit_s + 1):
            result = pickle.dumps((VALUE, _value(name, states)))
    except TimeLimit as late:
        return pickle.dumps((LATE, str(late)))
    except BaseException as error:  # noqa: BLE001 - of users' code; the process continues
        return pickle.dumps((ERROR, f"raised {type(error).__name__}: {error}"[: LARGEST // 8]))
    if len(result) > LARGEST:
        return pickle.dumps(
            (ERROR, f"returned {len(result):,} bytes; at most {LARGEST:,} are kept")
        )
    return result


def _value(name: str, states: Sequence[bytes]) -> Any:
    known = registered_aggregate(name)
    if known is None:
        raise LookupError(f"no module registers the aggregate {name}")
    state = states[0]
    for other in states[1:]:
        state = known.work.merge(state, other)
    return known.work.result(state)
