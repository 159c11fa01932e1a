"""Requests to stop Weir: Ctrl-C, SIGTERM and a closed terminal, counted for loops."""

import os
import signal
from pathlib import Path
from typing import Final

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# Set by the Makefile: make is the parent process.
UNDER_MAKE: Final = "WEIR_UNDER_MAKE"


class EndRequests:
    """The number and source of requests to stop Weir."""

    def __init__(self) -> None:
        self.count = 0
        self.reason = ""
        self._make = MakeWatch() if os.environ.get(UNDER_MAKE) else None

    def listen(self) -> None:
        """Handle the signals; one that was ignored from the start (nohup) stays ignored."""
        for number in ENDING:
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            signal.signal(number, self._note)
        # Writing to a closed terminal must be an error, not a signal.
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    def stop_requested(self) -> bool:
        """Return True if the stop was requested."""
        if not self.count and self._make is not None and self._make.is_ending():
            self._count("make ends")
        return self.count > 0

    def urgent(self) -> bool:
        """Return True if the stop was requested again, which skips graceful shutdown."""
        return self.count > 1

    def _note(self, number: int, _frame: object) -> None:
        self._count("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)

    def _count(self, reason: str) -> None:
        self.count += 1
        self.reason = reason


class MakeWatch:
    """Detects that the parent make was requested to stop, or has ended.

    make forwards SIGTERM, but not a SIGINT or SIGHUP that only make receives (a closed terminal
    signals the leader of its session alone). It then waits for its children and no longer catches
    the signal, as /proc shows.
    """

    def __init__(self) -> None:
        self._pid = os.getppid()
        self._caught = _caught_signals(self._pid)

    def is_ending(self) -> bool:
        """Return whether make has ended, or catches fewer signals than at our start."""
        return os.getppid() != self._pid or bool(self._caught & ~_caught_signals(self._pid))


def _caught_signals(pid: int) -> int:
    """Return the ending signals that a process catches, as a bit mask; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    caught = next((int(line.split()[1], 16) for line in lines if line.startswith("SigCgt")), 0)
    return caught & sum(1 << (number - 1) for number in ENDING)
