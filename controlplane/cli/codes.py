"""Exit codes and error messages: what is wrong, where, what to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """Exit codes; scripts rely on the numbers."""

    DONE = 0
    REFUSED = 1
    WRONG = 2
    NOT_FOUND = 3
    FORBIDDEN = 4
    AWAY = 5
    WAITED = 6
    BROKEN = 70
    INTERRUPTED = 130
    UNHEARD = 141


# Of `weir diff` alone, whose faults end with REFUSED.
DIFFERENT: Final = 2
ABOUT = {
    ExitCode.DONE: "done",
    ExitCode.REFUSED: "the present state does not allow it, or it failed",
    ExitCode.WRONG: "the command line, a value or a document is wrong; of `weir diff`: a cluster "
    "differs from its description, and what is wrong ends with 1",
    ExitCode.NOT_FOUND: "no such cluster, query, proposal or file",
    ExitCode.FORBIDDEN: "the user is unknown or lacks the role",
    ExitCode.AWAY: "database or Redis cannot be reached, or too much waits: try again",
    ExitCode.WAITED: "not finished within the time limit; it continues",
    ExitCode.BROKEN: "a fault of Weir itself",
    ExitCode.INTERRUPTED: "Ctrl-C",
    ExitCode.UNHEARD: "the reader closed the output",
}


@dataclass
class CliError(Exception):
    """An error for the terminal: what is wrong, lines of where, and what to do."""

    code: ExitCode
    what: str
    where: Sequence[str] = ()
    advice: str = ""

    def lines(self) -> list[str]:
        """Return the lines for standard error."""
        lines = [f"weir: {self.what}", *(f"  {line}" for line in self.where)]
        return [*lines, f"weir: what to do: {self.advice}"] if self.advice else lines
