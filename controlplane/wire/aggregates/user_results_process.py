"""What a child does for `user_results`: it calls a user's aggregate.

A call that no signal interrupts ends it.
"""

import importlib
import os
import pickle
import struct
import sys
import time
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from controlplane.wire.language.registered import registered_aggregate
from controlplane.wire.limits import TimeLimit, limit_memory, time_limit

# Kinds of answers: a value, why there is none, and why there is none in time.
VALUE: Final = "value"
ERROR: Final = "error"
LATE: Final = "late"
# A call that no signal interrupts ends its process so much later (s), with this exit code.
LATER_S: Final = 1.0
ENDED: Final = 1
BEGAN: Final = struct.Struct("<d")
# Bytes of one answer.
LARGEST: Final = 1 << 20
_STDOUT: Final = 1


def answer(modules: Sequence[str], name: str, states: Sequence[bytes], limit_s: float) -> bytes:
    """Return the start of the call of a window (monotonic s), and its kind and value, pickled.

    `modules` are imported before.
    """
    _prepare(tuple(modules))
    return BEGAN.pack(time.monotonic()) + _answer(name, states, limit_s)


def _answer(name: str, states: Sequence[bytes], limit_s: float) -> bytes:
    try:
        with time_limit(limit_s, end_after_s=limit_s + LATER_S):
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
