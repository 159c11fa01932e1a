"""A computation in a child has limits, and ends when it is not wanted."""

import ctypes
import gc
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from pyarrow.csv import read_csv

from algorithms.compiled import compiled
from algorithms.errors import TooLarge
from controlplane.child_processes.confinement import Limits
from controlplane.child_processes.errors import ChildDied, OutOfMemory, OutOfTime, Unwanted
from controlplane.child_processes.trees import is_alive
from controlplane.processes.isolation.child import run_in_child

MB = 1 << 20
LIMITS = Limits(memory_bytes=200 * MB, seconds=60.0)


def test_a_result_returns_with_its_progress() -> None:
    """Of another process, at a lower priority, which the kernel would kill first."""

    def compute(report: Callable[[float], None]) -> tuple[int, int, str, Any]:
        report(0.5)
        time.sleep(0.3)
        with open("/proc/self/oom_score_adj") as score:  # noqa: PTH123
            return os.getpid(), os.nice(0), score.read().strip(), np.arange(3)

    shares: list[float] = []

    def watch(share: float) -> bool:
        shares.append(share)
        return True

    pid, niceness, score, values = run_in_child(compute, LIMITS, watch)
    assert pid != os.getpid()
    assert niceness > os.nice(0)
    assert score == "1000"
    assert values.tolist() == [0, 1, 2]
    assert set(shares) == {0.5}


def test_a_child_starts_programs_after_its_parent_has_used_arrow() -> None:
    """Arrow wakes a thread by a pipe, which it closes and opens again in each fork."""
    read_csv(io.BytesIO(b"a\n1\n"))

    def compute(_: object) -> bytes:
        # Python forks itself only for such a function; PySpark has one.
        with subprocess.Popen(
            ["cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=lambda: None,  # noqa: PLW1509 - as PySpark starts Java
        ) as program:
            return program.communicate(b"records", timeout=20)[0]

    assert run_in_child(compute, LIMITS) == b"records"


def test_an_error_returns_with_its_values() -> None:
    def compute(_: object) -> None:
        raise TooLarge("of 10 cells")

    with pytest.raises(TooLarge, match="of 10 cells"):
        run_in_child(compute, LIMITS)


@compiled
def fill(count: int) -> float:
    """Return the sum of an array that compiled code allocates."""
    return float(np.ones(count).sum())


def grow_list(_: object) -> None:
    grown = []
    while True:
        grown.append(bytes(MB))


def abort(_: object) -> None:
    """Do as a C++ library whose allocation fails."""
    kept = np.ones(150 * MB // 8)
    os.abort()
    del kept


class Unreadable(Exception):
    """Its constructor does not accept what pickle gives it."""

    def __init__(self, *, code: str) -> None:
        super().__init__(f"code {code}")


def test_an_error_that_cannot_be_read_returns_with_its_text() -> None:
    def compute(_: object) -> None:
        raise Unreadable(code="SPARK_JOB_CANCELLED")

    with pytest.raises(RuntimeError, match="Unreadable: code SPARK_JOB_CANCELLED"):
        run_in_child(compute, LIMITS)


@pytest.mark.parametrize(
    "compute",
    [lambda _: np.ones(2**32).sum(), grow_list, lambda _: fill(2**32), abort],
    ids=["numpy", "python", "compiled", "abort"],
)
def test_memory_beyond_the_limit_ends_the_child_alone(compute: Callable[[Any], Any]) -> None:
    """With the figures, whatever allocates."""
    fill(1)
    with pytest.raises(OutOfMemory) as ended:
        run_in_child(compute, LIMITS)
    assert ended.value.code == "out_of_memory"
    assert ended.value.limit == 200 * MB


def start_two(_: object) -> None:
    """Start two programs, of which each is within the limit."""
    code = "x = bytearray(b'1' * (150 << 20)); import time; time.sleep(600)"
    for program in [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]:
        program.wait()


def test_what_a_child_starts_shares_its_memory() -> None:
    with pytest.raises(OutOfMemory) as ended:
        run_in_child(start_two, Limits(LIMITS.memory_bytes, 600.0))
    assert ended.value.used > ended.value.limit


def test_the_kernel_s_kill_counts_as_memory() -> None:
    """Nobody else kills a child with -9."""
    with pytest.raises(OutOfMemory):
        run_in_child(lambda _: os.kill(os.getpid(), signal.SIGKILL), LIMITS)


def test_a_crash_is_not_memory() -> None:
    with pytest.raises(ChildDied) as ended:
        run_in_child(lambda _: ctypes.string_at(0), LIMITS)
    assert ended.value.number == signal.SIGSEGV


@compiled
def spin() -> int:
    """Never return, never report, and never let a signal handler run."""
    turns = 0
    while turns >= 0:
        turns = (turns + 1) % 1000
    return turns


def test_time_ends_even_compiled_code() -> None:
    with pytest.raises(OutOfTime) as ended:
        run_in_child(lambda _: spin(), Limits(LIMITS.memory_bytes, 0.3))
    assert ended.value.limit == 0.3


def test_what_is_not_wanted_ends_with_its_descendants() -> None:
    """A planner may have started a process of its own."""
    seen: list[psutil.Process] = []
    before = psutil.Process().children(recursive=True)

    def compute(_: object) -> None:
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE):
            spin()

    def unwanted(_: float) -> bool:
        seen.extend(set(psutil.Process().children(recursive=True)).difference(before))
        return len(seen) < 2

    with pytest.raises(Unwanted):
        run_in_child(compute, LIMITS, unwanted)
    assert len(seen) >= 2
    assert not any(map(is_alive, seen))


def test_a_child_ends_with_its_parent() -> None:
    """A worker that is killed with -9 leaves no computation behind."""
    worker = os.fork()
    if worker == 0:
        run_in_child(lambda _: time.sleep(60), LIMITS)
        os._exit(0)
    process = psutil.Process(worker)
    while not process.children():
        time.sleep(0.01)
    (child,) = process.children()
    process.kill()
    os.waitpid(worker, 0)
    while is_alive(child):
        time.sleep(0.01)


ORPHAN = (
    "import subprocess; print(subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL,"
    " start_new_session=True).pid)"
)


def test_what_a_killed_child_started_and_wrote_is_removed(tmp_path: Path) -> None:
    """Also a process of its own session whose parent has ended, and a fork of its own."""
    record = tmp_path / "record"

    def compute(_: object) -> None:
        orphan = subprocess.check_output([sys.executable, "-c", ORPHAN], text=True).strip()
        folder = tempfile.mkdtemp()
        fork = os.fork()
        if fork == 0:
            signal.pause()
        record.write_text(f"{orphan} {fork} {folder}")
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(OutOfMemory):
        run_in_child(compute, LIMITS)
    orphan, fork, folder = record.read_text().split()
    assert not psutil.pid_exists(int(orphan)) or not is_alive(psutil.Process(int(orphan)))
    assert not psutil.pid_exists(int(fork)) or not is_alive(psutil.Process(int(fork)))
    assert not Path(folder).exists()
    assert not Path(folder).parent.exists()


def test_the_folder_of_a_killed_worker_is_removed_by_the_next_computation() -> None:
    """Only if no process has the id in its name."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    abandoned = Path(tempfile.mkdtemp(prefix=f"weir-computation-{ended.pid}-"))
    kept = Path(tempfile.mkdtemp(prefix=f"weir-computation-{os.getpid()}-"))
    run_in_child(lambda _: None, LIMITS)
    assert not abandoned.exists()
    assert kept.exists()
    kept.rmdir()


def test_what_this_process_froze_stays_frozen() -> None:
    """The web process excludes what it loads at its start from garbage collection."""
    gc.freeze()
    before = gc.get_freeze_count()
    # A few of them are deleted by their last reference meanwhile.
    assert run_in_child(lambda _: gc.get_freeze_count(), LIMITS) > 0.9 * before
    assert gc.get_freeze_count() > 0.9 * before
