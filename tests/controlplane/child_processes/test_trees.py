"""Nothing outlives its parent, however that ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from controlplane.child_processes import trees
from controlplane.child_processes.start import spawn
from tests.controlplane.processes.runtime.waiting import (
    PARENT_OF_STUBBORN,
    is_gone,
    pid_in,
    wait_for,
)

SPAWNER = """
import os, pathlib, sys, time
from controlplane.child_processes.start import spawn
folder = pathlib.Path(sys.argv[1])
code = "import os, pathlib, sys, time\\n" \\
    "pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); time.sleep(600)"
spawn([sys.executable, "-c", code, str(folder / "pid")], os.environ, folder / "log")
time.sleep(600)
"""


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """-9 gives the parent no chance to end its children itself."""
    parent = subprocess.Popen([sys.executable, "-c", SPAWNER, str(tmp_path)])
    child = pid_in(tmp_path / "pid")
    parent.kill()
    parent.wait()
    wait_for(lambda: is_gone(child))


def test_a_child_leads_a_session_and_writes_to_its_log(tmp_path: Path) -> None:
    """Ctrl-C in a terminal goes to one session: the runner's."""
    log = tmp_path / "log"
    code = "import os; print(os.getsid(0) == os.getpid())"
    child = spawn([sys.executable, "-c", code], os.environ, log)
    assert child.wait(timeout=20) == 0
    assert log.read_text() == "True\n"


class Dying:
    """A process that is killed, and found no more, before it has ended."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.signals: list[int] = []

    def send_signal(self, number: int) -> None:
        self.signals.append(number)

    def nice(self, value: int) -> None:
        assert value == 0

    def is_running(self) -> bool:
        self.looks -= 1
        return self.looks > 0

    def status(self) -> str:
        return "running"


def test_a_process_that_is_found_no_more_is_awaited() -> None:
    """The environment of a process that dies is gone before the process."""
    process: Any = Dying(8)
    rounds = iter([[process]])
    assert trees.kill_all(lambda: next(rounds, []))
    assert process.looks <= 0
    assert process.signals[0] == signal.SIGKILL


def test_a_marked_tree_is_found_and_killed_across_sessions(tmp_path: Path) -> None:
    """Groups and sessions do not hold a tree together; the environment does."""
    env = {**os.environ, "WEIR_TEST_MARK": str(tmp_path)}
    pid_file = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", PARENT_OF_STUBBORN, str(pid_file)], env=env)
    child = pid_in(pid_file)
    found = trees.with_environment("WEIR_TEST_MARK", str(tmp_path))
    assert {process.pid for process in found} == {parent.pid, child}
    assert trees.kill_with_environment("WEIR_TEST_MARK", str(tmp_path))
    assert parent.wait(timeout=60) == -signal.SIGKILL
    wait_for(lambda: is_gone(child))
