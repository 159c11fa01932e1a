"""Lines of logs: a text of a user can neither begin a line nor control a terminal.

A record begins a line; its traceback follows in lines that begin with `CONTINUED`. All processes of
Weir write their records with `LineFormatter`.
"""

import logging
from typing import Any, Final

# Begins the lines of a traceback, so that a message in it cannot look like a record.
CONTINUED: Final = "| "
# Characters of a line: a request may have 16 KiB in its path.
MAX_LINE: Final = 8_000
FORMAT: Final = "{asctime} {levelname} {name}: {message}"


class LineFormatter(logging.Formatter):
    """Formats a record as one line, and its traceback as lines that begin with `CONTINUED`."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - of logging
        """Return the line of a record without its traceback."""
        return escaped(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - of logging
        """Return the lines of a traceback."""
        return _continued(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - of logging
        """Return the lines of a stack."""
        return _continued(super().formatStack(stack_info))


def escaped(text: str) -> str:
    """Return a text, at most `MAX_LINE` of its characters, with escapes of unprintable ones.

    Unprintable are line ends, ANSI escapes, controls of direction, and halves of surrogate pairs.
    """
    if len(text) > MAX_LINE:
        text = f"{text[:MAX_LINE]}… ({len(text):,} characters)"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def write_log_to_stderr() -> None:
    """Let this process, which has no settings of Django, write its log to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter(FORMAT, style="{"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _continued(text: str) -> str:
    return "\n".join(CONTINUED + escaped(line) for line in text.split("\n"))
