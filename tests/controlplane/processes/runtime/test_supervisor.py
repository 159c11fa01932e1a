"""Children are restarted with back-off, whatever happens, and ended whole."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.processes.runtime import supervisor as supervising
from controlplane.processes.runtime.beats import HeartbeatWatch
from controlplane.processes.runtime.children import ChildSpec
from controlplane.processes.runtime.errors import RunError, Stopped
from controlplane.processes.runtime.supervisor import Supervisor, restart_pause
from tests.controlplane.processes.runtime.waiting import (
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
        longest_pause_s=values.get("longest_pause_s", 60.0),
        silent_s=values.get("silent_s"),
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
    assert said[0].startswith("web was ended by signal 9; starting it again in ")
    (report,) = supervisor.reports()
    assert (report.failures, report.is_running) == (1, True)


@pytest.mark.parametrize(
    ("failures", "fraction", "pause_s"),
    [(1, 0.0, 1.0), (3, 0.0, 4.0), (3, 1.0, 3.0), (7, 0.0, 60.0), (5000, 0.0, 60.0)],
)
def test_pauses_double_up_to_a_bound(failures: int, fraction: float, pause_s: float) -> None:
    """With jitter, so that processes that ended together do not restart in step."""
    assert restart_pause(failures, 60.0, fraction) == pause_s


def test_a_child_that_keeps_dying_ends_nothing_else(
    supervisor: Supervisor, said: list[str]
) -> None:
    """Its reason is shown once; the other children run on, and it is reported as restarting."""
    supervisor.start(spec("web", WAITS))
    web = pid_of(supervisor, "web")
    supervisor.start(spec("lab", "raise SystemExit('no such table')", longest_pause_s=0.01))

    def has_failed() -> bool:
        supervisor.tick()
        return supervisor.children["lab"].failures > 6

    wait_for(has_failed)
    assert pid_of(supervisor, "web") == web
    assert len([line for line in said if "no such table" in line and "try again" in line]) == 1
    reports = {report.name: report for report in supervisor.reports()}
    assert reports["web"].failures == 0
    assert reports["lab"].failures > 6
    assert reports["lab"].ended


def test_a_command_that_does_not_exist_is_tried_again(supervisor: Supervisor) -> None:
    """As when the machine is out of memory, processes or descriptors."""
    supervisor.start(ChildSpec("lab", ("/nowhere/lab",), "", longest_pause_s=0.01))

    def failed_repeatedly() -> bool:
        supervisor.tick()
        return supervisor.children["lab"].failures > 2

    wait_for(failed_repeatedly)


def test_a_child_that_cannot_work_is_not_counted_as_failing(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk ends workers and beat again and again."""
    monkeypatch.setattr(supervising, "BLOCKED_S", 0.0)
    reasons = ["the disk of data is full"] * 5
    supervisor = Supervisor(
        tmp_path, os.environ, said.append, blocked=lambda: reasons.pop() if reasons else ""
    )
    supervisor.start(spec("worker", "raise SystemExit('MISCONF')"))

    def is_counted() -> bool:
        supervisor.tick()
        return supervisor.children["worker"].failures > 1

    wait_for(is_counted)
    blocked = [line for line in said if "as the disk of data is full; starting it again" in line]
    assert len(blocked) == 5
    assert supervisor.end_all(hurry=lambda: True)


def test_a_silent_child_is_killed_once_redis_has_responded_long_enough(
    redis_server: str, tmp_path: Path
) -> None:
    """Silence during an outage of Redis shows nothing, neither does a start."""
    watch = HeartbeatWatch(redis_server)
    child = spec("relay", WAITS, silent_s=60.0)
    assert not watch.is_hung(child, 1000.0, now=1000.0), "Redis was not read"
    watch.note({"relay/relay": 5}, now=1000.0)
    assert not watch.is_hung(child, 1000.0, now=1059.0)
    assert watch.is_hung(child, 1000.0, now=1061.0)
    assert not watch.is_hung(child, 30.0, now=1061.0), "it has just started"
    watch.note({"relay/relay": 6}, now=1060.0)
    assert not watch.is_hung(child, 1000.0, now=1061.0)
    assert not watch.is_hung(spec("agent", WAITS), 1000.0, now=9999.0)
    supervisor = Supervisor(tmp_path, os.environ, lambda _: None, watch=watch)
    supervisor.start(spec("relay", WAITS, silent_s=0.0))

    def failed_once() -> bool:
        supervisor.tick()
        return supervisor.children["relay"].failures == 1

    wait_for(failed_once)
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
from controlplane.child_processes import trees
from controlplane.processes.runtime.children import ChildSpec
from controlplane.processes.runtime.supervisor import Supervisor
folder = pathlib.Path(sys.argv[1])
trees.adopt_orphans()
supervisor = Supervisor(folder, os.environ, print)
command = (sys.executable, "-c", sys.argv[2], str(folder / "pid"))
supervisor.start(ChildSpec("agent", command, ""))
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
