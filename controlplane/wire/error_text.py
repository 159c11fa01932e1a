"""The line that states the cause in the output of a failed process."""

import re
from collections.abc import Sequence
from typing import Final

from controlplane.wire.redaction import without_password

_ERROR: Final = re.compile(r"(Error|Exception|ERROR|CRITICAL|FATAL)\b")
_TRACEBACK: Final = "Traceback (most recent call last)"
_JAVA_FRAME: Final = re.compile(r"\s*(at [\w.$]+[(]|\.\.\. \d+ more)")
# Errors of the wire are whole sentences; their class says nothing to an operator.
_OWN: Final = re.compile(r"^controlplane\.wire\.errors\.\w+: ")


def cause_line(lines: Sequence[str]) -> str:
    """Return the last line with an error, else the last line, else ""; without secrets.

    The end of a Python traceback has an error whatever its class is called. Its begin has none:
    Spark writes the traceback of a Python worker into its own error.
    """
    result, in_traceback = (lines or [""])[-1], False
    for line in lines:
        if _TRACEBACK in line:
            in_traceback = True
        elif not (in_traceback and line[:1].isspace()):
            if in_traceback or (_ERROR.search(line) and not _JAVA_FRAME.match(line)):
                result = line
            in_traceback = False
    return without_password(_OWN.sub("", result.strip()))
