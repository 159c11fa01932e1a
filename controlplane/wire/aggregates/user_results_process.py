"""The process that calls users' aggregates for `user_results`: one call after the other.

It ends with its connection, and with a call that no signal interrupts.
"""

import importlib
import pickle
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any, Final

from controlplane.wire.language.registered import registered_aggregate
from controlplane.wire.limits import TimeLimit, limit_memory, time_limit

# Kinds of answers: a value, why there is none, and why there is none in time.
VALUE: Final = "value"
ERROR: Final = "error"
LATE: Final = "late"
# Bytes of one answer.
LARGEST: Final = 1 << 20


def main() -> None:
    """Answer calls until the other end closes the connection."""
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    limit_memory()
    connection.send(None)
    while True:
        try:
            modules, name, limit_s, page_s, windows = connection.recv()
        except EOFError:
            return
        _import(modules)
        connection.send(None)
        started = time.monotonic()
        for number, states in enumerate(windows):
            if number and time.monotonic() - started >= page_s:
                break
            connection.send_bytes(_answer(name, states, limit_s))
        connection.send(None)


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


if __name__ == "__main__":
    main()
