"""A pytest plug-in that tests mutants in children of the process that collected the tests.

    WEIR_MUTANTS=<fd>,<fd> python -m pytest -p benchmarks.mutation.server ...

Importing Weir takes more time than most tests. A line of JSON on the first file descriptor is a
mutant with its tests; the line on the second is what they did: killed, survived, timeout,
unpatched if the mutant needs a process of its own, or invalid if a test that fails with the mutant
fails without it, too.
"""

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutation.patching import patched

_KILLED, _SURVIVED, _UNPATCHED = 1, 0, 7
_STATUSES = {_KILLED: "killed", _SURVIVED: "survived", _UNPATCHED: "unpatched"}
# Where a child writes the name of the test that fails, by its process.
_children: dict[int, int] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Test mutants until the input ends."""
    _start_shared(session.items)
    read_fd, write_fd = map(int, os.environ["WEIR_MUTANTS"].split(","))
    with os.fdopen(read_fd) as requests, os.fdopen(write_fd, "w") as answers:
        for line in requests:
            answers.write(json.dumps(_tested(session.items, json.loads(line))) + "\n")
            answers.flush()
    return True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """End the child with the first test that fails, and report that test."""
    writing = _children.get(os.getpid())
    if report.failed and writing is not None:
        os.write(writing, report.nodeid.encode())
        os._exit(_KILLED)


def _start_shared(items: Sequence[pytest.Item]) -> None:
    """Run a test with database and Redis, which start for the session."""
    first = next((item for item in items if "sf" in getattr(item, "fixturenames", ())), None)
    if first is not None:
        _run([first])


def _run(chosen: Sequence[pytest.Item]) -> None:
    """Run tests without the end of what the session shares."""
    for place, item in enumerate(chosen):
        following = chosen[place + 1] if place + 1 < len(chosen) else None
        # Without a next test the session would end; a test of another folder would leave fixtures.
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following or item.session)


def _tested(items: Sequence[pytest.Item], request: Mapping[str, Any]) -> str:
    """Return what the tests of a mutant did in a child."""
    status, failed = _in_child(items, request)
    if failed in request["tests"]:
        # What fails without the mutant detects nothing.
        tests = request["tests"][: request["tests"].index(failed) + 1]
        control = {**request, "mutated": request["original"], "tests": tests}
        if _in_child(items, control)[0] == "killed":
            return "invalid"
    return status


def _in_child(items: Sequence[pytest.Item], request: Mapping[str, Any]) -> tuple[str, str]:
    """Return what the tests did in a child, and the test that failed (empty for none)."""
    from django.db import connections  # noqa: PLC0415 - after the settings of pytest-django

    connections.close_all()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            _test_in_child(items, request, writing)
        finally:
            os._exit(_KILLED)
    _, status = os.waitpid(child, 0)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.close(writing)
    # Not to its end: a process that the tests started may hold the other side.
    os.set_blocking(reading, False)
    try:
        failed = os.read(reading, 4_096).decode()
    except BlockingIOError:
        failed = ""
    os.close(reading)
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) == signal.SIGALRM else "killed", failed
    return _STATUSES[os.WEXITSTATUS(status)], failed


def _test_in_child(items: Sequence[pytest.Item], request: Mapping[str, Any], writing: int) -> None:
    """Apply the mutant, run its tests, and end the process."""
    os.setsid()
    original, mutated = request["original"], request["mutated"]
    if mutated != original and not patched(request["path"], original, mutated):
        os._exit(_UNPATCHED)
    _children[os.getpid()] = writing
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(request["timeout_s"]))
    with tempfile.TemporaryDirectory() as folder:
        _copy_databases(Path(folder))
        by_name = {item.nodeid: item for item in items}
        _run([by_name[name] for name in request["tests"] if name in by_name])
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(_SURVIVED)


def _copy_databases(folder: Path) -> None:
    """Use copies of the databases: a child that is killed cannot empty them."""
    from django.db import connections  # noqa: PLC0415

    for alias in connections:
        settings = connections[alias].settings_dict
        file = Path(str(settings["NAME"]))
        if file.is_file():
            settings["NAME"] = str(shutil.copy2(file, folder / f"{alias}.sqlite3"))
