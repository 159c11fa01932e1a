"""Start of processes that cannot outlive this one, and stop of whole trees of processes.

Each child leads a session of its own, so that Ctrl-C in a terminal reaches the runner alone, and
requests a signal from the kernel at the death of its parent (prctl(2), PR_SET_PDEATHSIG), so that
no process survives a parent that is killed with -9. The kernel means the parent *thread*: spawn
from the main one.
"""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
# For killed processes to end.
_PATIENCE_S: Final = 10.0
# Loaded before any fork: the child of a fork must not import or allocate more than it must.
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def spawn(
    command: Sequence[str], env: Mapping[str, str], log: Path, inherited: Sequence[int] = ()
) -> "subprocess.Popen[bytes]":
    """Start `command` in its own session, output appended to `log`, and return it.

    It inherits the descriptors `inherited`.

    The kernel ends the child (SIGTERM) when this process dies. Raises OSError if it cannot start.
    """
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603 - our own command lines
            command,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=inherited,
            preexec_fn=_tie_to_parent(),  # noqa: PLW1509 - one system call, no lock
        )


def end_with_parent() -> None:
    """Let the kernel end this process (SIGTERM) when the process that started it dies.

    For processes that a library starts, instead of `spawn`.
    """
    _LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent dies (Linux only)."""
    _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


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
    return [process for process in psutil.Process().children(recursive=True) if is_alive(process)]


def with_environment(name: str, value: str) -> list[psutil.Process]:
    """Return the other running processes with `name=value` in their environment."""
    return [
        process
        for process in psutil.process_iter()
        if process.pid != os.getpid() and _has(process, name, value) and is_alive(process)
    ]


def kill_all(find: Callable[[], list[psutil.Process]]) -> bool:
    """Kill (-9) what `find` returns until it returns nothing; return True if all have ended.

    Each round finds processes that were forked in the meantime.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while pids := find():
        if time.monotonic() > deadline:
            return False
        send(pids, signal.SIGKILL)
        # Not psutil.wait_procs: it would take our children's return codes from their Popen.
        time.sleep(0.02)
    return True


def send(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to each process that still exists."""
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _has(process: psutil.Process, name: str, value: str) -> bool:
    try:
        return process.environ().get(name) == value
    except (psutil.Error, OSError):
        return False


def _tie_to_parent() -> Callable[[], None]:
    parent = os.getpid()

    def tie() -> None:
        end_with_parent()
        # The parent may have died before the line above took effect.
        if os.getppid() != parent:
            os._exit(1)

    return tie
