"""Turning Ctrl-C, SIGTERM and a closed terminal into a count that loops look at."""

import os
import signal
from typing import Final

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# Set by the Makefile: make does not pass every signal on, so its own end is watched.
UNDER_MAKE: Final = "WEIR_UNDER_MAKE"


class EndRequests:
    """How often somebody asked Weir to end, and by what."""

    def __init__(self) -> None:
        self.count = 0
        self.reason = ""
        self._parent = os.getppid() if os.environ.get(UNDER_MAKE) else None

    def listen(self) -> None:
        """Take over the signals; one that was ignored from the start (nohup) stays ignored."""
        for number in ENDING:
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            signal.signal(number, self._note)
        # Writing to a terminal that is gone must be an error we can pass over.
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    def asked(self) -> bool:
        """Return whether the end was asked for."""
        if self._parent is not None and os.getppid() != self._parent:
            self._parent = None
            self._count("make is gone")
        return self.count > 0

    def urgent(self) -> bool:
        """Return whether it was asked for again: no more patience then."""
        return self.count > 1

    def _note(self, number: int, _frame: object) -> None:
        self._count("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)

    def _count(self, reason: str) -> None:
        self.count += 1
        self.reason = reason
