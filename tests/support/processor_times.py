"""How much processor time each file of tests takes, with all processes that it starts.

`make test T='-p tests.support.processor_times --processor-times times.jsonl'` appends a line per
test to the file, and prints the files that took most. Unlike the wall time, the figure depends
little on what else the machine runs.
"""

import ctypes
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil
import pytest

SHOWN: Final = 40
_SUM: Final = "all files"
# Linux's prctl(2): descendants whose parent ended become children of this process.
_PR_SET_CHILD_SUBREAPER: Final = 36


@dataclass(frozen=True)
class Times:
    """What one test took, its fixtures included, in seconds."""

    test: str
    processor_s: float
    wall_s: float


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file of the figures."""
    parser.addoption("--processor-times", type=Path, metavar="FILE", help="append a line per test")


def pytest_sessionstart() -> None:
    """Adopt descendants that lose their parent, which would otherwise not be counted."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Append the times of a test to the file."""
    processor, wall = used_s(), time.monotonic()
    result = yield
    times = Times(item.nodeid, used_s() - processor, time.monotonic() - wall)
    path: Path | None = item.config.getoption("--processor-times")
    if path is not None:
        with path.open("a") as lines:
            lines.write(json.dumps(asdict(times)) + "\n")
    return result


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the files that took most processor time."""
    path: Path | None = config.getoption("--processor-times")
    if path is None or not path.exists():
        return
    terminalreporter.section("processor time (s), wall time (s), file")
    for line in table(read_times(path)):
        terminalreporter.write_line(line)


def read_times(path: Path) -> list[Times]:
    """Return the times in a file, of all runs that appended to it."""
    return [Times(**json.loads(line)) for line in path.read_text().splitlines()]


def table(times: list[Times]) -> list[str]:
    """Return a line per file, the one with most processor time first, and the sum of all last."""
    processor, wall = defaultdict[str, float](float), defaultdict[str, float](float)
    for test in times:
        for file in (test.test.partition("::")[0], _SUM):
            processor[file] += test.processor_s
            wall[file] += test.wall_s
    files = sorted(processor.keys() - {_SUM}, key=lambda file: -processor[file])[:SHOWN]
    return [f"{processor[file]:8.1f} {wall[file]:8.1f} {file}" for file in [*files, _SUM]]


def used_s() -> float:
    """Return the processor time of this process and of all its descendants so far, in seconds."""
    process = psutil.Process()
    return sum(_used_s(each) for each in [process, *process.children(recursive=True)])


def _used_s(process: psutil.Process) -> float:
    try:
        return sum(process.cpu_times()[:4])
    except psutil.NoSuchProcess:
        return 0.0
