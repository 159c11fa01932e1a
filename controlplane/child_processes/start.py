"""The start of programs that cannot outlive this process.

Each child leads a session of its own, so that Ctrl-C in a terminal reaches the runner alone, and
requests a signal from the kernel at the death of its parent (prctl(2), PR_SET_PDEATHSIG), so that
no process survives a parent that is killed with -9. The kernel means the parent *thread*: start
children in the main one.
"""

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

PR_SET_PDEATHSIG: Final = 1
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


def end_with_parent(parent: int | None = None) -> None:
    """Let the kernel end this process (SIGTERM) when the process that started it dies.

    Ends it at once if `parent`, the id of that process, is dead already.
    """
    _LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def _tie_to_parent() -> Callable[[], None]:
    parent = os.getpid()
    return lambda: end_with_parent(parent)
