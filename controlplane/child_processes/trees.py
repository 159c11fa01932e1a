"""Whole trees of processes: found by descent, group or a mark in their environment, and ended.

A mark is a variable of the environment, which children inherit across sessions and groups; it
identifies what a killed parent has left behind.
"""

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

PR_SET_CHILD_SUBREAPER: Final = 36
# For killed processes to end.
_PATIENCE_S: Final = 10.0
# Between two searches for further processes, and between two looks whether they have ended.
_ROUND_S: Final = 0.25
_LOOK_S: Final = 0.005


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent dies (Linux only)."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_adopted(own: Iterable[int]) -> None:
    """Collect adopted orphans that have ended, except the processes `own` of Popen objects."""
    ours = set(own)
    with suppress(ChildProcessError):
        while dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if dead.si_pid in ours:
                return
            os.waitpid(dead.si_pid, os.WNOHANG)


def descendants() -> list[psutil.Process]:
    """Return every running descendant of this process, adopted orphans included."""
    return family(os.getpid())[1:]


def family(pid: int) -> list[psutil.Process]:
    """Return a process and all its descendants, without any that has ended."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return [item for item in (process, *process.children(recursive=True)) if is_alive(item)]
    return []


def with_environment(name: str, value: str) -> list[psutil.Process]:
    """Return the other running processes with `name=value` in their environment."""
    entry = f"{name}={value}".encode()
    return [
        process for process in _others(lambda pid: entry in _environment(pid)) if is_alive(process)
    ]


def in_group(group: int) -> list[psutil.Process]:
    """Return the other running processes of a process group."""
    return [process for process in _others(lambda pid: _group(pid) == group) if is_alive(process)]


def _others(wanted: Callable[[int], bool] = lambda _: True) -> Iterator[psutil.Process]:
    """Yield the other processes of the machine whose id is wanted.

    Not psutil.process_iter: where the kernel reuses the id of a process that has ended, its cache
    has the old process, which does not run.
    """
    for pid in psutil.pids():
        if pid != os.getpid() and wanted(pid):
            with suppress(psutil.Error):
                yield psutil.Process(pid)


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def kill_all(find: Callable[[], list[psutil.Process]]) -> bool:
    """Kill (-9) what `find` returns until it returns nothing; return True if all have ended.

    Each round finds processes that were forked in the meantime. A process that dies loses its
    environment before it ends, so those of earlier rounds are awaited, too.
    """
    deadline = time.monotonic() + _PATIENCE_S
    known: set[psutil.Process] = set()
    while True:
        known.update(find())
        alive = [process for process in known if is_alive(process)]
        if not alive:
            return True
        if time.monotonic() > deadline:
            return False
        for process in alive:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)
            # A process of a low priority ends late on a busy machine.
            with suppress(psutil.Error, OSError):
                process.nice(0)
        _await_end(alive)


def kill_with_environment(name: str, value: str) -> bool:
    """Kill (-9) the processes with `name=value` in their environment, as `kill_all` does."""
    return kill_all(lambda: with_environment(name, value))


def _await_end(processes: Iterable[psutil.Process]) -> None:
    """Wait until killed processes have ended, for the length of a round at most."""
    end = time.monotonic() + _ROUND_S
    # Not psutil.wait_procs: it would take our children's return codes from their Popen.
    while time.monotonic() < end and any(map(is_alive, processes)):
        time.sleep(_LOOK_S)


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _environment(pid: int) -> list[bytes]:
    """Return the variables of a process as `name=value`, none if it has ended or is another user's.

    Not by psutil, which reads the state of each process, too: that takes ten times as long.
    """
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
