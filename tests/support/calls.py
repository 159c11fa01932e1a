"""Functions that children of a pool compute; the module imports little."""

import ctypes
import os
import signal


def child_id() -> bytes:
    return str(os.getpid()).encode()


def confinement() -> bytes:
    with open("/proc/self/oom_score_adj") as score:  # noqa: PTH123
        text = score.read().strip()
    return f"{os.nice(0)} {text} {len(os.listdir('/proc/self/fd'))}".encode()  # noqa: PTH208


def crash() -> bytes:
    return ctypes.string_at(1, 1)


def kill(number: int) -> bytes:
    os.kill(os.getpid(), number)
    return b""


def fail() -> bytes:
    raise KeyError("colour")


def take(size: int) -> bytes:
    return bytes(bytearray(size))


def hang() -> bytes:
    while True:
        pass


def keep(size: int, kept: list[bytearray] = []) -> bytes:  # noqa: B006 - a leak
    kept.append(bytearray(b"x" * size))
    return child_id()


def kill_server() -> bytes:
    """Kill the fork server, by which this child ends, too."""
    os.kill(os.getppid(), signal.SIGKILL)
    return hang()
