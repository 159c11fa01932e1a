"""Children that are forked from a loaded process are those of the runner, as if it started them."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from controlplane.child_processes.preload import Adopted, parse

# The runner: it starts children and prints their exit codes. Arguments: log, then signals or codes.
RUNNER = """
import os, sys, time
from pathlib import Path
from controlplane.child_processes import trees
from controlplane.child_processes.preload import Preloaded
from controlplane.child_processes.socket_folders import own_directory
trees.adopt_orphans()
folder = Path(sys.argv[1])
env = {**os.environ, "MARK": "run"}
preloaded = Preloaded("decimal", env, folder / "preloaded.log", own_directory())
while not preloaded.is_ready():
    time.sleep(0.01)
for name in sys.argv[2:]:
    reader, writer = os.pipe()
    os.write(writer, b"hello")
    code = "wait" if name.startswith("-") else name
    command = ("nice", "-n", "3", "env", "COLOUR=red", sys.executable, "-m",
               "tests.controlplane.child_processes.shown", code)
    log = folder / f"{name}.log"
    if name == "5":
        preloaded.process.kill()
        preloaded.process.wait()
    if name == "6":
        preloaded.revive()
    child = preloaded.start(command, {**env, "DESCRIPTOR": str(reader)}, log, [reader])
    while name.startswith("-") and not log.read_text():
        time.sleep(0.01)
    if name.startswith("-"):
        child.send_signal(-int(name))
    while child.poll() is None:
        preloaded.reap_orphans()
        time.sleep(0.01)
    print(type(child).__name__, child.returncode, flush=True)
print(os.getpid(), flush=True)
"""


def run(folder: Path, *names: str) -> tuple[list[list[str]], list[dict[str, Any]]]:
    """Return what the runner printed, and what each child showed."""
    command = [sys.executable, "-c", RUNNER, str(folder), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr + (folder / "preloaded.log").read_text()
    shown = [json.loads((folder / f"{name}.log").read_text()) for name in names]
    return [line.split() for line in done.stdout.splitlines()], shown


def test_the_runner_is_the_parent_of_a_fork(tmp_path: Path) -> None:
    """It has its exit code, and the kernel shows its own command line and variables."""
    (first, second, (runner,)), shown = run(tmp_path, "7", f"-{signal.SIGTERM:d}")
    assert (first, second) == (["Adopted", "7"], ["Adopted", f"-{signal.SIGTERM:d}"])
    for about, argument in zip(shown, ("7", "wait"), strict=True):
        module = "tests.controlplane.child_processes.shown"
        assert about["command"] == [sys.executable, "-m", module, argument]
        assert about["arguments"] == [argument]
        assert about["parent"] == int(runner)
        assert about["session"]
        assert about["ignores_broken_pipes"]
        assert about["niceness"] == min(19, os.nice(0) + 3)
        assert about["inherited"] == "hello"
        variables = about["variables"]
        assert (variables["MARK"], variables["COLOUR"]) == ("run", "red")
        assert {"MARK=run", "COLOUR=red"} < set(about["environment"])
        assert "WEIR_ROOM" not in variables


def test_without_the_loaded_process_children_start_as_programs(tmp_path: Path) -> None:
    """Until it is started again."""
    (first, second, _), (about, _) = run(tmp_path, "5", "6")
    assert (first, second) == (["Popen", "5"], ["Adopted", "6"])
    assert about["niceness"] == min(19, os.nice(0) + 3)


def test_threads_may_poll_one_child() -> None:
    threads = 8
    barrier = Barrier(threads)
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(50):
            program = subprocess.Popen(["true"])
            child = Adopted(program.pid)

            def poll_until_end(child: Adopted = child) -> int:
                barrier.wait()
                while child.poll() is None:
                    pass
                assert child.returncode is not None
                return child.returncode

            assert set(pool.map(lambda _: poll_until_end(), range(threads))) == {0}
            program.returncode = 0


@pytest.mark.parametrize("command", [("redis-server", "x"), (sys.executable, "-c", "pass")])
def test_other_programs_are_not_forked(command: tuple[str, ...]) -> None:
    assert parse(command) is None
