"""Waiting for long work of a Weir: plans, comparisons, runs of the Lab."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from controlplane.cli.client.api import Api, path_of
from controlplane.cli.codes import CliError, ExitCode

# Seconds between two looks at work that is under way.
_LOOK_S: Final = 0.2


@dataclass(frozen=True)
class Wait:
    """How long work is followed: the address of its row, and the state of the row.

    `path` has values of the first response in braces, as `later`: what to do after the time-out.
    `is_done` and `share` read a row; a command whose work `has_failed` ends with exit code 1.
    """

    path: str
    is_done: Callable[[Any], bool]
    share: Callable[[Any], float]
    has_failed: Callable[[Any], bool] = lambda row: False
    later: str = ""


def follow(api: Api, wait: Wait, values: Mapping[str, Any], timeout: float) -> Any:
    """Return the row of long work once it is done. Raises `CliError` after `timeout` seconds."""
    # Rich is imported by commands only: the parser reads the declarations.
    from controlplane.cli.output import progress_bar  # noqa: PLC0415

    deadline = time.monotonic() + timeout
    path = path_of(wait.path, values)
    with progress_bar("computing") as bar:
        while True:
            row = api.get(path)
            if wait.is_done(row):
                return row
            bar(wait.share(row))
            if time.monotonic() > deadline:
                later = f" Later: {wait.later.format_map(values)}" if wait.later else ""
                advice = f"is a worker running? `weir health`.{later}"
                text = f"{path} is not computed after {timeout:g} s"
                raise CliError(ExitCode.WAITED, text, advice=advice)
            time.sleep(_LOOK_S)


def _is_computed(row: Any) -> bool:
    return bool(row["state"] not in ("queued", "running"))


_RUN: Final = Wait(
    "/lab/runs/{id}", _is_computed, lambda row: float(row["progress"]),
    lambda row: row["state"] != "done",
)  # fmt: skip
_COMPARISON: Final = Wait(
    "/clusters/{cluster}/comparisons/{id}", lambda row: not row["computing"],
    lambda row: 1 - row["computing"] / max(1, len(row["candidates"])),
)  # fmt: skip
# By command: what --wait follows.
WAITS: Final = {
    "lab start": _RUN, "lab show": _RUN, "lab again": _RUN,
    "compare request": _COMPARISON, "compare show": _COMPARISON,
}  # fmt: skip
