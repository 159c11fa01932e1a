"""The command itself: what it refuses, how it says so, and what it leaves behind."""

import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.processes.runtime.children import Place
from controlplane.processes.runtime.runner import end_leftovers, ensure_login
from controlplane.processes.runtime.signals import UNDER_MAKE
from tests.controlplane.processes.runtime.waiting import (
    PARENT_OF_STUBBORN,
    is_gone,
    pid_in,
    wait_for,
)

ROOT = Path(__file__).resolve().parents[4]
RUNNER = [sys.executable, "-m", "controlplane.cli.main", "serve"]


def run_refused(data: Path, **env: str) -> str:
    """Run the command, which must refuse, and return what it said."""
    environment = {**os.environ, "WEIR_DATA": str(data), **env}
    environment.pop("REDIS_URL", None) if "REDIS_URL" not in env else None
    told = subprocess.run(
        RUNNER, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert told.returncode == 1
    assert told.stderr == ""
    return told.stdout


@pytest.mark.parametrize(("option", "status"), [("--help", 0), ("--ports", 2)])
def test_options_start_nothing(tmp_path: Path, option: str, status: int) -> None:
    environment = {**os.environ, "WEIR_DATA": str(tmp_path / "data")}
    done = subprocess.run(
        [*RUNNER, option], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == status
    assert ("environment variables" in done.stdout) == (status == 0)
    assert not (tmp_path / "data").exists()


def test_a_taken_port_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """The commonest trouble of all, told without a traceback."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = run_refused(tmp_path / "data", WEIR_PORT=str(port))
    assert f"port {port} is taken" in said
    assert "what to do: end that process, or take another port: WEIR_PORT=" in said


def test_a_wrong_value_is_refused_by_name(tmp_path: Path) -> None:
    """As `8080a` in WEIR_PORT."""
    assert "WEIR_PORT='8080a'" in run_refused(tmp_path / "data", WEIR_PORT="8080a")


def test_a_redis_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    """With REDIS_URL given, Weir does not start one of its own behind one's back."""
    said = run_refused(tmp_path / "data", WEIR_PORT="0", REDIS_URL="redis://127.0.0.1:1/0")
    assert "WEIR_PORT='0'" in said
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    said = run_refused(tmp_path / "data", WEIR_PORT=port, REDIS_URL="redis://127.0.0.1:1/0")
    assert "REDIS_URL=redis://127.0.0.1:1/0 does not answer" in said


def test_what_a_killed_run_left_is_ended_first(tmp_path: Path) -> None:
    """A child that ignores SIGTERM outlives a runner that was killed with -9."""
    pid_file = tmp_path / "pid"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT_OF_STUBBORN, str(pid_file)],
        env={**os.environ, "WEIR_RUN": str(tmp_path)},
    )
    child = pid_in(pid_file)
    parent.kill()
    parent.wait()
    said: list[str] = []
    end_leftovers(tmp_path, said.append)
    assert is_gone(child)
    assert said == ["ending 1 processes left over by a run that was killed"]


def test_the_login_is_made_once_and_kept_private(tmp_path: Path) -> None:
    """Later starts name the file instead of the password."""
    first, second = ensure_login(tmp_path), ensure_login(tmp_path)
    assert (first.is_new, second.is_new) == (True, False)
    assert first.password == second.password
    assert stat.S_IMODE(first.file.stat().st_mode) == 0o600
    assert ensure_login(tmp_path / "other").password != first.password


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "http://127.0.0.1:8000/"), ("0.0.0.0", "http://127.0.0.1:8000/")],
)
def test_the_printed_address_can_be_opened(host: str, address: str) -> None:
    """No browser opens 0.0.0.0 everywhere."""
    assert Place(Path(), host, 8000, "", Path()).address == address


def test_every_child_is_marked_and_kept_to_one_thread() -> None:
    """Ten processes with a thread per core each would fight for two cores."""
    env = Place(Path("/data"), "127.0.0.1", 8000, "redis://r", Path("/java")).environment()
    assert env["WEIR_RUN"] == env["WEIR_DATA"] == "/data"
    assert env["JAVA_HOME"] == "/java"
    assert env["REDIS_URL"] == "redis://r"
    assert env["OMP_NUM_THREADS"] == os.environ.get("OMP_NUM_THREADS", "1")


SIGNALLED = """
import os, signal, sys
from controlplane.processes.runtime.signals import EndRequests
requests = EndRequests()
requests.listen()
for number in sys.argv[1:]:
    os.kill(os.getpid(), int(number))
print(requests.stop_requested(), requests.urgent(), requests.reason)
"""


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([], "False False "),
        ([signal.SIGINT], "True False Ctrl-C"),
        ([signal.SIGTERM], "True False SIGTERM"),
        ([signal.SIGHUP], "True False SIGHUP"),
        ([signal.SIGINT, signal.SIGINT], "True True Ctrl-C"),
    ],
)
def test_every_way_to_end_is_noted(numbers: list[int], expected: str) -> None:
    """Ctrl-C, kill, a closed terminal; a second time means at once."""
    command = [sys.executable, "-c", SIGNALLED, *(str(int(number)) for number in numbers)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert told.stdout == f"{expected}\n"


UNDER = """
import pathlib, sys, time
from controlplane.processes.runtime.signals import EndRequests
requests = EndRequests()
requests.listen()
pathlib.Path("ready").touch()
while not requests.stop_requested():
    time.sleep(0.02)
pathlib.Path("reason").write_text(requests.reason)
"""


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGINT, "make ends"),
        (signal.SIGHUP, "make ends"),
        (signal.SIGTERM, "SIGTERM"),
        (signal.SIGKILL, "make ends"),
    ],
)
def test_a_signal_that_only_make_gets_ends_the_run(
    tmp_path: Path, number: signal.Signals, reason: str
) -> None:
    """`kill -INT` on make, or a terminal whose session make leads: make would wait for ever."""
    (tmp_path / "under.py").write_text(UNDER)
    recipe = f"run:\n\t@exec env {UNDER_MAKE}=1 PYTHONPATH={ROOT} {sys.executable} under.py\n"
    (tmp_path / "Makefile").write_text(recipe)
    make = subprocess.Popen(
        # Signals that whoever runs the tests ignores would stay ignored in make.
        ["env", "--default-signal", "make", "run"],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_for((tmp_path / "ready").exists)
    make.send_signal(number)
    make.wait(timeout=20)
    wait_for(lambda: (tmp_path / "reason").exists() and (tmp_path / "reason").read_text() != "")
    assert (tmp_path / "reason").read_text() == reason
