"""A pytest plug-in that tests mutants in children of the process that collected the tests.

    WEIR_MUTANTS=<fd>,<fd> python -m pytest -p benchmarks.mutation.server ...

Importing Weir takes more time than most tests. A line of JSON on the first file descriptor is a
mutant with its tests; the line on the second is what they did: killed, survived, timeout, or
unpatched if the mutant needs a process of its own.
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
_children: set[int] = set()


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
    """End the child with the first test that fails."""
    if report.failed and os.getpid() in _children:
        os._exit(_KILLED)


def _start_shared(items: Sequence[pytest.Item]) -> None:
    """Run a test with database and Redis, which start for the session."""
    first = next((item for item in items if "sf" in getattr(item, "fixturenames", ())), None)
    if first is not None:
        _run([first], items)


def _run(chosen: Sequence[pytest.Item], items: Sequence[pytest.Item]) -> None:
    """Run tests without the end of what the session shares."""
    for place, item in enumerate(chosen):
        following = chosen[place + 1] if place + 1 < len(chosen) else None
        # Without a next test, the session would end.
        following = following or next(other for other in items if other is not item)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _tested(items: Sequence[pytest.Item], request: Mapping[str, Any]) -> str:
    """Return what the tests of a mutant did in a child."""
    from django.db import connections  # noqa: PLC0415 - after the settings of pytest-django

    connections.close_all()
    child = os.fork()
    if not child:
        try:
            _test_in_child(items, request)
        finally:
            os._exit(_KILLED)
    _, status = os.waitpid(child, 0)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) == signal.SIGALRM else "killed"
    return _STATUSES[os.WEXITSTATUS(status)]


def _test_in_child(items: Sequence[pytest.Item], request: Mapping[str, Any]) -> None:
    """Apply the mutant, run its tests, and end the process."""
    os.setsid()
    if not patched(request["path"], request["original"], request["mutated"]):
        os._exit(_UNPATCHED)
    _children.add(os.getpid())
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(request["timeout_s"]))
    with tempfile.TemporaryDirectory() as folder:
        _copy_databases(Path(folder))
        by_name = {item.nodeid: item for item in items}
        _run([by_name[name] for name in request["tests"] if name in by_name], items)
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
