"""A progress bar for terminals; no output into files."""

import time
from types import TracebackType
from typing import Protocol, Self

WIDTH = 40
# Ten times a second looks smooth and costs nothing.
EVERY_S = 0.1


class Terminal(Protocol):
    """What Django's commands write to."""

    def write(self, msg: str = "", *, ending: str = "\n") -> object:
        """Write a text."""

    def isatty(self) -> bool:
        """Return True if the output is a terminal."""


class ProgressBar:
    """Shows a share from 0 to 1 in place; leaves an empty line behind."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._seen = terminal.isatty()
        self._begun = time.monotonic()
        self._shown_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._seen:
            self._terminal.write("\r\x1b[K", ending="")

    def show(self, share: float) -> None:
        """Draw the share done."""
        now = time.monotonic()
        if not self._seen or now - self._shown_at < EVERY_S:
            return
        self._shown_at = now
        done = round(WIDTH * share)
        bar = "#" * done + "." * (WIDTH - done)
        self._terminal.write(f"\r[{bar}] {share:4.0%} {now - self._begun:.0f} s", ending="")
