"""What a forked child does first: limits, priority, signals and descriptors of its own."""

import os
import resource
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

from controlplane.runtime.processes import end_with_parent

# Added to the niceness of the parent.
_NICER: Final = 5
# The kernel kills the process with the highest score first.
_FIRST_TO_KILL: Final = "1000"
_STANDARD: Final = 3
_RESET: Final = (
    signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM, signal.SIGCHLD, signal.SIGUSR1,
    signal.SIGUSR2,
)  # fmt: skip


def confine(memory_bytes: int, kept: int, parent: int) -> None:
    """Confine this process: it ends with its parent and may allocate so many bytes more.

    All descriptors but the standard ones and `kept` are closed. Ends the process at once if the
    process `parent` is dead already.
    """
    _reset_signals()
    end_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    limit = private_bytes() + memory_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(_NICER)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_KILL, encoding="ascii")
    # An open descriptor would keep a socket or a lock of the parent beyond the parent's death.
    os.closerange(_STANDARD, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))


def private_bytes() -> int:
    """Return the bytes of private writable memory, which RLIMIT_DATA counts."""
    return _status("VmData")


def peak_bytes() -> int:
    """Return the most bytes of memory that this process has had."""
    return _status("VmHWM")


def resident_bytes() -> int:
    """Return the bytes of memory that this process has now."""
    return _status("VmRSS")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * 1024
    return 0


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    # Ctrl-C reaches the whole group of a terminal: the parent ends its child.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
