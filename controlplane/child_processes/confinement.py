"""What a forked child does first: limits, priority, signals and descriptors of its own."""

import os
import resource
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controlplane.child_processes.start import end_with_parent

# Added to the niceness of the parent: computations wait for requests.
NICER: Final = 5
# The kernel kills the process with the highest score first.
_FIRST_TO_KILL: Final = "1000"
_STANDARD: Final = 3
_DESCRIPTORS: Final = "/proc/self/fd"
_RESET: Final = (
    signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM, signal.SIGCHLD, signal.SIGUSR1,
    signal.SIGUSR2,
)  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """Limits: bytes of memory beyond that of the parent, and seconds by the wall clock."""

    memory_bytes: int
    seconds: float


def begin(parent: int) -> None:
    """Do what every fork does first: signals by default, no core dump, no life beyond its parent.

    Ends this process at once if the process `parent` is dead already.
    """
    signal.set_wakeup_fd(-1)
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    # Ctrl-C reaches the whole group of a terminal: the parent ends its child.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    end_with_parent(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def confine(memory_bytes: int, kept: int, niceness: int = NICER) -> None:
    """Confine this process: it may allocate so many bytes more.

    `niceness`: added to that of the parent. All descriptors are closed but the standard ones,
    `kept`, and pipes within this process.
    """
    limit = private_bytes() + memory_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    os.nice(niceness)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_KILL, encoding="ascii")
    # An open descriptor would keep a socket or a lock of the parent beyond the parent's death.
    for number in _not_needed(kept):
        with suppress(OSError):
            os.close(number)


def _not_needed(kept: int) -> list[int]:
    """Return the descriptors but the standard ones, `kept`, and pipes with both ends here.

    A library wakes a thread of its own by such a pipe. Arrow closes and reopens its pipe in each
    fork: were it closed before, Arrow would close what has its number now, or abort.
    """
    targets: dict[int, str] = {}
    for name in os.listdir(_DESCRIPTORS):  # noqa: PTH208 - the names are numbers
        # The descriptor of the listing itself has gone.
        with suppress(OSError):
            targets[int(name)] = os.readlink(f"{_DESCRIPTORS}/{name}")  # noqa: PTH115
    ends = Counter(targets.values())
    own = targets.get(kept)
    return [
        number for number, target in targets.items()
        if number >= _STANDARD and number != kept
        and not (target.startswith("pipe:") and ends[target] > 1 and target != own)
    ]  # fmt: skip


def private_bytes() -> int:
    """Return the bytes of private writable memory, which RLIMIT_DATA counts."""
    return _status("VmData")


def peak_bytes() -> int:
    """Return the most bytes of memory that this process has had."""
    return _status("VmHWM")


def resident_bytes() -> int:
    """Return the bytes of memory that this process has now."""
    return _status("VmRSS")


def own_bytes(pid: int) -> int:
    """Return the bytes of memory that a process shares with no other, 0 if it has ended."""
    return _figure(f"/proc/{pid}/smaps_rollup", "Private_Clean", "Private_Dirty", "Swap")


def _status(name: str) -> int:
    return _figure("/proc/self/status", name)


def _figure(file: str, *names: str) -> int:
    """Return the sum of figures in kB of a file of /proc, in bytes."""
    try:
        lines = Path(file).read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    pairs = (line.split(":") for line in lines if line.startswith(names))
    return sum(int(value.split()[0]) * 1024 for name, value in pairs if name in names)
