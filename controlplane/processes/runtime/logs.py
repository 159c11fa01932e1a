"""Log files of child processes: bounded, and read as they grow."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controlplane.formats.log_lines import escaped
from controlplane.wire.errors import cause_line

MAX_BYTES: Final = 20_000_000
TAIL_BYTES: Final = 64_000
_ALARM: Final = re.compile(r"(?:^|[\s\[])(WARN|WARNING|ERROR|CRITICAL|FATAL)(?=[\s\]:]|$)")


def rotate(log: Path, limit: int = MAX_BYTES) -> None:
    """Copy a log over `limit` bytes to `<name>.1` and truncate it, as its writer has it open."""
    if log.exists() and log.stat().st_size > limit:
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
        with log.open("r+b") as file:
            file.truncate(0)


def tail(log: Path, lines: int = 12, start: int = 0) -> list[str]:
    """Return the last non-blank lines of a log, none from before byte `start`."""
    if not log.exists():
        return []
    size = log.stat().st_size
    with log.open("rb") as file:
        file.seek(max(min(start, size), size - TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]


def last_error(log: Path, start: int = 0) -> str:
    """Return the line with the cause of an error, else the last line, else ""."""
    return cause_line(tail(log, 400, start))


@dataclass(slots=True)
class Follower:
    """Reads the new lines of a log."""

    log: Path
    position: int = 0

    def skip(self) -> None:
        """Skip to the end."""
        self.position = self.log.stat().st_size if self.log.exists() else 0

    def alarms(self) -> list[str]:
        """Return the new whole lines with a warning or an error."""
        return [escaped(line) for line in self._new_lines() if _ALARM.search(line)]

    def _new_lines(self) -> list[str]:
        if not self.log.exists():
            return []
        if self.log.stat().st_size < self.position:
            self.position = 0
        with self.log.open("rb") as file:
            file.seek(self.position)
            whole, newline, _ = file.read(TAIL_BYTES * 4).rpartition(b"\n")
        self.position += len(whole) + len(newline)
        return whole.decode("utf-8", "replace").splitlines()
