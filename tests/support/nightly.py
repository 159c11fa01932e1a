"""What `make test` leaves out: the parts of `make nightly`, each of at most 40 minutes.

A test is of a part by its mark: `nightly("restarts")` runs by night alone; with `by_day=True` it
runs by day, too, with less of what it tries (`6 if not NIGHTLY else 100`). Laws of hypothesis and
tests of both databases are of a part by what they are.
"""

import os
from collections.abc import Iterable
from typing import Any, Final

import hypothesis
import pytest

PARTS: Final = {
    "schedules": "random schedules of plans and kills, and random lives of the data plane",
    "spark": "what takes further starts of Spark: kills of its parts, other logs, attached jobs",
    "operator": "the whole day of an operator on one Weir, from the log-in to the next start",
    "losses": "whole Weirs of their own that lose disks, Redis and processes, and begin again",
    "overload": "whole Weirs of their own: overloads, their causes, data sets, a first cluster",
    "scenarios": "a scenario of each planner on a whole Weir, from its alert to the verdict",
    "browser": "every page in a browser: rare dialogs, widths and themes, accessibility",
    "pages": "pages without a browser: rare fields, dialogs and states, by subject",
    "access": "log-ins and sessions that are refused, destinations that a site may not reach",
    "commands": "the command line and descriptions of clusters: rare commands and options",
    "requests": "generated and rare requests to operations and pages, every role at every address",
    "databases": "tests of both databases on each of them, and migrations of earlier releases",
    "estimates": "how often intervals of estimates contain what they estimate",
    "laws": "all examples of laws, new ones each night",
    "solvers": "guarantees of solvers on many instances, and all words and expressions of queries",
    "package": "Weir as a package, and its processes apart, in environments of their own",
    "lab": "the Lab: experiments, figures of papers, precomputing; recordings and their sources",
}
LAWS: Final = "laws"
DATABASES: Final = "databases"
# The part that runs, "" by day.
PART: Final = os.environ.get("WEIR_NIGHTLY", "")
NIGHTLY: Final = bool(PART)


def by_night(part: str, rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return the parameters of a test that is of a part with them; the others run by day."""
    return [pytest.param(*row, marks=pytest.mark.nightly(part)) for row in rows]


def part_of(item: pytest.Item) -> str:
    """Return the part of `make nightly` that runs a test, "" for none."""
    if mark := item.get_closest_marker("nightly"):
        (part,) = mark.args
        if part not in PARTS:
            message = f"{item.nodeid}: {part} is not a part of make nightly ({', '.join(PARTS)})"
            raise pytest.UsageError(message)
        return str(part)
    if hypothesis.is_hypothesis_test(getattr(item, "obj", None)):
        return LAWS
    return DATABASES if item.get_closest_marker("both_databases") else ""


def runs(item: pytest.Item, part: str = PART) -> bool:
    """Return whether a test is of a part, or for "" whether `make test` runs it."""
    if part:
        return part_of(item) == part
    mark = item.get_closest_marker("nightly")
    # Its name is looked at by day, too.
    return mark is None or bool(part_of(item) and mark.kwargs.get("by_day"))


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the part that runs, by day those of `make test`."""
    if PART not in ("", *PARTS):
        raise pytest.UsageError(f"{PART} is not a part of make nightly ({', '.join(PARTS)})")
    kept = [item for item in items if runs(item)]
    if len(kept) < len(items):
        left = set(items).difference(kept)
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = kept


if __name__ == "__main__":
    print(*PARTS)  # noqa: T201 - the Makefile reads it
