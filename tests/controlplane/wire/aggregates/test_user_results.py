"""Users' aggregates that loop, crash or return nonsense end neither their reader nor its page."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import pythonapi
from pathlib import Path
from typing import Any

import pytest

from controlplane.wire import limits
from controlplane.wire.aggregates import user_results
from controlplane.wire.aggregates.user_results import Outcome
from controlplane.wire.aggregates.user_results import user_results as called
from controlplane.wire.language.registered import aggregate

# Long enough for what should succeed on a busy machine.
LIMIT_S = 2.0


class Kept:
    """Values that no other process can read."""

    def __reduce__(self) -> Any:
        return os.getenv, ("HOME", 1, 2, 3)


def swallow_everything() -> None:
    while True:
        with suppress(BaseException):
            time.sleep(0.001)


def hold_the_interpreter() -> None:
    """In C, with the interpreter's lock: no thread of Python runs, no signal is handled."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    pythonapi.usleep(60_000_000)


def make_noise() -> None:
    os.write(1, b"noise")


def die_once(mark: Path) -> None:
    """Be killed, if this was not called before."""
    if not mark.exists():
        mark.write_text("once")
        os.kill(os.getpid(), signal.SIGKILL)


def give_up(error: BaseException) -> None:
    raise error


JOBS: dict[bytes, Callable[[], Any]] = {
    b"loop": swallow_everything,
    b"hold": hold_the_interpreter,
    b"hang": lambda: time.sleep(60),
    b"slow": lambda: time.sleep(0.2),
    b"crash": lambda: os.kill(os.getpid(), signal.SIGKILL),
    b"exit": lambda: os._exit(7),
    b"quit": lambda: give_up(SystemExit("no")),
    b"raise": lambda: give_up(ValueError("it is odd")),
    b"huge": lambda: "x" * (2 << 20),
    b"kept": Kept,
    b"print": make_noise,
}


@aggregate(takes="int", gives="int", name="test_odd_jobs")
class OddJobs:
    """Does with a state what the state names."""

    def partial(self, values: Any) -> bytes:
        return b"".join(f"{value}".encode() for value in values)

    def merge(self, left: bytes, right: bytes) -> bytes:
        return left + right

    def result(self, state: bytes) -> Any:
        if state.startswith(b"once "):
            die_once(Path(os.fsdecode(state[5:])))
        found = JOBS[state]() if state in JOBS else None
        return len(state) if found is None else found


NAME = "test_odd_jobs"


@pytest.fixture(autouse=True)
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process that has called nothing yet, with a short limit."""
    monkeypatch.setenv(limits.CALL_SECONDS, str(LIMIT_S))
    limits.call_seconds.cache_clear()
    user_results._LIMITS.clear()
    yield
    limits.call_seconds.cache_clear()
    user_results._LIMITS.clear()


def test_states_of_a_window_are_merged_and_finished() -> None:
    windows = [[b"a", b"bc"], [b"d"], [b"print"]]
    assert called(NAME, windows) == [Outcome(3), Outcome(1), Outcome(5)]
    assert called(NAME, []) == []


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (b"raise", "raised ValueError: it is odd"),
        (b"quit", "raised SystemExit: no"),
        (b"crash", "ended its process (signal 9)"),
        (b"exit", "ended its process (code 7)"),
        (b"huge", "returned "),
        (b"kept", "returned a value that cannot be read"),
        (b"loop", "took longer than 2 s"),
        (b"hold", "took longer than 2 s"),
    ],
)
def test_one_windows_fault_leaves_the_others_their_values(state: bytes, why: str) -> None:
    """In a thread, as readers are."""
    found: list[Outcome] = []
    thread = threading.Thread(
        target=lambda: found.extend(called(NAME, [[b"a"], [state], [b"bc"]], 60.0))
    )
    thread.start()
    thread.join()
    first, bad, last = found
    assert (first, last) == (Outcome(1), Outcome(2))
    assert bad.value is None
    assert bad.error.startswith(why)


def test_only_windows_after_one_that_hangs_have_no_time_left() -> None:
    """An aggregate that is slow has its time."""
    windows = [[b"slow"], [b"slow"], [b"hang"], [b"a"]]
    *first, hung, last = called(NAME, windows, 0.0)
    assert first == [Outcome(4)] * 2
    assert (hung.error, last.error) == (
        "took longer than 2 s", "no time was left for it after 0 s"
    )  # fmt: skip


def test_the_limit_of_an_aggregate_that_hangs_is_halved_and_recovers() -> None:
    for _ in range(2):
        called(NAME, [[b"hang"]])
    (hung,) = called(NAME, [[b"hang"]])
    assert hung.error == "took longer than 0.5 s"
    for _ in range(4):
        assert called(NAME, [[b"a"]]) == [Outcome(1)]
    (hung,) = called(NAME, [[b"hang"]])
    assert hung.error == "took longer than 2 s"


def test_a_child_that_died_while_it_waited_blames_no_window() -> None:
    called(NAME, [[b"a"]])
    for waiting in user_results._children()._idle:
        os.kill(waiting.pid, signal.SIGKILL)
    assert called(NAME, [[b"a"]]) == [Outcome(1)]


def test_a_window_whose_child_the_machine_killed_has_its_value(tmp_path: Path) -> None:
    """Its row would keep the reason instead of the value for good."""
    mark = tmp_path / "called"
    windows = [[b"a"], [b"once " + os.fsencode(mark)], [b"bc"]]
    first, second, third = called(NAME, windows, 60.0)
    assert (first, third) == (Outcome(1), Outcome(2))
    assert second == Outcome(len(windows[1][0]))
    assert mark.read_text() == "once"


def test_calls_at_once_have_a_child_each() -> None:
    found: list[Outcome] = []
    threads = [
        threading.Thread(target=lambda: found.extend(called(NAME, [[b"slow"]]))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [Outcome(4)] * 3
