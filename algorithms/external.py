"""Trials that need more than this process: another program of the installation measures them.

The program is named, not imported: what it needs (a cluster, a log) is nothing for this room.
It gets its request as JSON on standard input and writes JSON lines: {"progress": 0.5},
{"rows": […]} at its end, or {"error": "…"}.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

from algorithms.errors import PlanningError
from algorithms.vocabulary import Progress

# What a program may take to leave no process behind once it is told to end.
_ENDING_S: Final = 60.0


class TrialFailed(PlanningError):
    """The program that measures a trial did not give its rows."""


def rows_of(module: str, request: Mapping[str, Any], report: Progress) -> list[dict[str, Any]]:
    """Return the rows that `python -m module` measures for a request.

    What `report` raises ends the program, too. Raises `TrialFailed`.
    """
    program = subprocess.Popen(  # noqa: S603 - a module of this installation
        [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        return _heard(program, request, report)
    finally:
        _end(program)


def _heard(
    program: "subprocess.Popen[str]", request: Mapping[str, Any], report: Progress
) -> list[dict[str, Any]]:
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(json.dumps(dict(request)))
    program.stdin.close()
    for line in program.stdout:
        message = json.loads(line)
        if "error" in message:
            raise TrialFailed(message["error"])
        if "rows" in message:
            rows: list[dict[str, Any]] = message["rows"]
            return rows
        report(float(message["progress"]))
    raise TrialFailed(f"the measuring program ended with {program.wait()} and gave no rows")


def _end(program: "subprocess.Popen[str]") -> None:
    program.terminate()
    try:
        program.wait(timeout=_ENDING_S)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
    if program.stdout is not None:
        program.stdout.close()
