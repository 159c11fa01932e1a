"""A pytest plug-in that records which lines each test executes, and how long it takes.

    WEIR_CONTEXTS=contexts.json python -m pytest -p benchmarks.mutation.contexts ...

`WEIR_CONTEXTS_SOURCES`: the measured folders, separated by colons.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import coverage
import pytest

_SOURCES: Final = "WEIR_CONTEXTS_SOURCES"
_seconds: dict[str, float] = {}
_failed: set[str] = set()
_measure = coverage.Coverage(
    data_file=None,
    source=[str(Path(part).resolve()) for part in os.environ.get(_SOURCES, ".").split(":")],
    config_file=False,
)
if _SOURCES in os.environ:
    # Before the modules are imported: their lines have the test "".
    _measure.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Count the lines of a test, with those of its fixtures, as its own."""
    _measure.switch_context(item.nodeid)
    started = time.monotonic()
    try:
        return (yield)
    finally:
        _seconds[item.nodeid] = round(time.monotonic() - started, 3)
        _measure.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note tests that fail without a mutation."""
    if report.failed:
        _failed.add(report.nodeid)


def pytest_unconfigure() -> None:
    """Write the lines, times and failures to the file."""
    _measure.stop()
    data, root = _measure.get_data(), Path.cwd()
    lines = {
        str(Path(name).relative_to(root)): data.contexts_by_lineno(name)
        for name in data.measured_files()
    }
    written = {"seconds": _seconds, "failed": sorted(_failed), "lines": lines}
    Path(os.environ["WEIR_CONTEXTS"]).write_text(json.dumps(written))
