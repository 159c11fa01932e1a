"""A progress bar for terminals, without output to files."""

import time
from types import TracebackType
from typing import Protocol, Self

WIDTH = 40
# Seconds between updates.
EVERY_S = 0.1


class Terminal(Protocol):
    """The output of Django's commands."""

    def write(self, msg: str = "", *, ending: str = "\n") -> object:
        """Write a text."""

    def isatty(self) -> bool:
        """Return True if the output is a terminal."""


class ProgressBar:
    """A progress bar of a share from 0 to 1, which an empty line replaces at the end."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._is_terminal = terminal.isatty()
        self._started_at = time.monotonic()
        self._shown_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_terminal:
            self._terminal.write("\r\x1b[K", ending="")

    def show(self, share: float) -> None:
        """Draw the finished share."""
        now = time.monotonic()
        if not self._is_terminal or now - self._shown_at < EVERY_S:
            return
        self._shown_at = now
        done = round(WIDTH * share)
        bar = "#" * done + "." * (WIDTH - done)
        self._terminal.write(f"\r[{bar}] {share:4.0%} {now - self._started_at:.0f} s", ending="")
