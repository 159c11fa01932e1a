"""Children are restarted, given up in time, and ended whole."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.runtime import supervisor as supervising
from controlplane.runtime.children import ChildSpec
from controlplane.runtime.errors import RunError, Stopped
from controlplane.runtime.supervisor import Supervisor
from tests.controlplane.runtime.waiting import (
    PARENT_OF_STUBBORN,
    STUBBORN,
    is_gone,
    pid_in,
    wait_for,
)

WAITS = "import time; time.sleep(600)"


def spec(name: str, code: str, *arguments: str, **values: float) -> ChildSpec:
    """Return a child that runs Python code."""
    command = (sys.executable, "-c", code, *arguments)
    return ChildSpec(
        name,
        command,
        "try again",
        patience_s=values.get("patience_s", 5.0),
        restarts=int(values.get("restarts", 3)),
    )


@pytest.fixture
def said() -> list[str]:
    """What the supervisor told the terminal."""
    return []


@pytest.fixture
def supervisor(tmp_path: Path, said: list[str]) -> Iterator[Supervisor]:
    """A supervisor whose children end with the test."""
    supervisor = Supervisor(tmp_path, os.environ, said.append)
    yield supervisor
    assert supervisor.end_all(hurry=lambda: True)


def pid_of(supervisor: Supervisor, name: str) -> int:
    """Return the process id of a running child."""
    pid = supervisor.children[name].pid
    assert pid is not None
    return pid


def test_a_dead_child_is_started_again(supervisor: Supervisor, said: list[str]) -> None:
    """One death of a web process is no reason to end Spark."""
    supervisor.start(spec("web", WAITS))
    first = pid_of(supervisor, "web")
    os.kill(first, 9)

    def restarted() -> bool:
        supervisor.tick()
        return supervisor.children["web"].pid not in {None, first}

    wait_for(restarted)
    assert "web was ended by signal 9; starting it again in 1 s" in said[0]


def test_a_child_that_keeps_dying_is_given_up_with_its_last_lines(supervisor: Supervisor) -> None:
    """The line must name the process, the reason and what to do."""
    supervisor.start(spec("relay", "raise SystemExit('no such table')", restarts=0))

    def tick() -> bool:
        supervisor.tick()
        return False

    with pytest.raises(RunError) as caught:
        wait_for(tick)
    assert "relay ended with code 1" in str(caught.value)
    assert "no such table" in str(caught.value)
    assert "try again" in caught.value.advice


def test_a_child_that_cannot_work_is_tried_until_it_can(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk ends workers and beat again and again: that must not end Weir."""
    monkeypatch.setattr(supervising, "BLOCKED_S", 0.0)
    reasons = ["the disk of data is full"] * 5
    supervisor = Supervisor(
        tmp_path, os.environ, said.append, blocked=lambda: reasons.pop() if reasons else ""
    )
    supervisor.start(spec("worker", "raise SystemExit('MISCONF')", restarts=1))

    def tick() -> bool:
        supervisor.tick()
        return False

    with pytest.raises(RunError):
        wait_for(tick)
    told = [line for line in said if "as the disk of data is full; starting it again" in line]
    assert len(told) == 5
    assert not reasons
    assert supervisor.end_all(hurry=lambda: True)


def test_warnings_of_a_child_are_forwarded_with_its_name(
    supervisor: Supervisor, said: list[str]
) -> None:
    """The rest stays in the log file."""
    supervisor.start(spec("beat", f"print('fine'); print('WARNING low', flush=True); {WAITS}"))

    def forwarded() -> bool:
        supervisor.tick()
        return bool(said)

    wait_for(forwarded)
    assert said == ["    beat | WARNING low"]


def test_a_failed_step_tells_its_own_lines(supervisor: Supervisor, tmp_path: Path) -> None:
    """Lines of an earlier start would mislead."""
    (tmp_path / "migrate.log").write_text("yesterday\n")
    with pytest.raises(RunError) as caught:
        supervisor.run_step(spec("migrate", "raise SystemExit('locked')"))
    assert "locked" in str(caught.value)
    assert "yesterday" not in str(caught.value)


def test_a_step_is_left_when_the_end_is_asked_for(tmp_path: Path) -> None:
    """Ctrl-C must work during a long migration too."""
    supervisor = Supervisor(tmp_path, os.environ, lambda _: None, stopping=lambda: True)
    with pytest.raises(Stopped):
        supervisor.run_step(spec("migrate", WAITS))
    assert supervisor.end_all()


def test_a_child_that_ignores_sigterm_is_killed_in_the_end(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    """Patience is bounded: a terminal must come back."""
    pid_file = tmp_path / "pid"
    supervisor.start(spec("worker", STUBBORN, str(pid_file), patience_s=0.2))
    pid = pid_in(pid_file)
    assert supervisor.end_all()
    assert is_gone(pid)


def test_redis_ends_after_all_others(supervisor: Supervisor, tmp_path: Path) -> None:
    """The others still write to it while they end."""
    record = (
        "import os, pathlib, signal, sys, time\n"
        "def end(*_):\n"
        "    os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT),"
        " sys.argv[2].encode())\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "pathlib.Path(sys.argv[1] + sys.argv[2]).write_text('ready')\n"
        "time.sleep(600)\n"
    )
    order = tmp_path / "order"
    for name, letter in (("redis", "r"), ("web", "w")):
        supervisor.start(spec(name, record, str(order), letter))
        wait_for((tmp_path / f"order{letter}").exists)
    assert supervisor.end_all()
    assert order.read_text() == "wr"


ADOPTING_RUN = """
import os, pathlib, sys, time
from controlplane.runtime import processes
from controlplane.runtime.children import ChildSpec
from controlplane.runtime.supervisor import Supervisor
folder = pathlib.Path(sys.argv[1])
processes.adopt_orphans()
supervisor = Supervisor(folder, os.environ, print)
command = (sys.executable, "-c", sys.argv[2], str(folder / "pid"))
supervisor.start(ChildSpec("agent", command, "", restarts=0))
while not (folder / "pid").exists():
    time.sleep(0.02)
os.kill(supervisor.children["agent"].pid, 9)
supervisor.children["agent"].process.wait()
sys.exit(not supervisor.end_all())
"""


def test_grandchildren_whose_parent_died_are_ended_too(tmp_path: Path) -> None:
    """A JVM goes on when the Python that started it is killed."""
    command = [sys.executable, "-c", ADOPTING_RUN, str(tmp_path), PARENT_OF_STUBBORN]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
    assert is_gone(pid_in(tmp_path / "pid"))
