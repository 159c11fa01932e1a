"""Children of a pool answer many calls; one that ends, grows or hangs costs its own call alone."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from controlplane.child_processes import pool
from controlplane.child_processes.confinement import Limits
from controlplane.child_processes.errors import (
    ChildDied,
    ChildFailed,
    NoChild,
    OutOfMemory,
    OutOfTime,
)
from controlplane.child_processes.fork import forked
from controlplane.child_processes.pool import ChildPool
from controlplane.child_processes.trees import is_alive
from tests.controlplane.processes.runtime.waiting import is_gone, wait_for
from tests.support.calls import (
    child_id,
    confinement,
    crash,
    fail,
    hang,
    keep,
    kill,
    kill_server,
    take,
)

MB = 1 << 20


@pytest.fixture(scope="module")
def children() -> ChildPool:
    return ChildPool(Limits(200 * MB, 60.0), 1, [])


@pytest.fixture
def idle(children: ChildPool) -> Iterator[bytes]:
    """The id of the only child, which the next call has."""
    yield children.call(child_id)
    # The pool works after whatever a test did.
    assert psutil.pid_exists(int(children.call(child_id)))


def test_a_child_answers_many_calls_confined(children: ChildPool, idle: bytes) -> None:
    """At the priority of its parent; with the standard descriptors, its pipe and the listing."""
    assert children.call(child_id) == idle
    assert children.call(confinement).decode() == f"{os.nice(0)} 1000 5"
    assert len(children.call(take, 20 * MB)) == 20 * MB


@pytest.mark.parametrize(
    ("compute", "arguments", "error", "text"),
    [
        (crash, (), ChildDied, "SIGSEGV"),
        (kill, (signal.SIGABRT,), ChildDied, "SIGABRT"),
        (kill, (signal.SIGKILL,), OutOfMemory, "limit of 200 MB"),
        (os._exit, (3,), ChildDied, "without a signal"),
        (take, (300 * MB,), OutOfMemory, "limit of 200 MB"),
        (fail, (), ChildFailed, "KeyError: 'colour'"),
    ],
)
def test_a_call_that_fails_ends_alone(
    children: ChildPool, idle: bytes, compute: object, arguments: object, error: type, text: str
) -> None:
    """The next call has a child again: another, but after an error of Python."""
    with pytest.raises(error, match=text):
        children.call(compute, *arguments)  # type: ignore[arg-type,misc]
    assert (children.call(child_id) == idle) is (compute is fail)


def test_a_call_without_end_is_ended() -> None:
    """By the clock of the kernel, also in native code."""
    children = ChildPool(Limits(200 * MB, 0.5), 1, [])
    with pytest.raises(OutOfTime, match="its limit is 0 s"):
        children.call(hang)


def test_an_idle_child_that_was_killed_is_replaced(children: ChildPool, idle: bytes) -> None:
    """No call is lost to it."""
    os.kill(int(idle), signal.SIGKILL)
    while psutil.pid_exists(int(idle)):
        pass
    assert children.call(child_id) != idle


def test_a_call_whose_fork_server_is_killed_may_be_repeated(
    children: ChildPool, idle: bytes
) -> None:
    """The call itself is not to blame; the next one starts another server."""
    server = psutil.Process(int(idle)).ppid()
    with pytest.raises(NoChild):
        children.call(kill_server)
    # A killed process takes a moment to end.
    wait_for(lambda: is_gone(server))
    assert psutil.Process(int(children.call(child_id))).ppid() != server


def test_a_call_that_no_child_has_received_is_repeated(children: ChildPool, idle: bytes) -> None:
    """The fork server is killed in the very moment of the call, and its children with it."""
    child = psutil.Process(int(idle))
    server = child.ppid()
    child.suspend()
    answers: list[bytes] = []
    call = threading.Thread(target=lambda: answers.append(children.call(child_id)))
    call.start()
    wait_for(lambda: not children._idle)
    os.kill(server, signal.SIGKILL)
    wait_for(lambda: is_gone(server))
    child.resume()
    call.join()
    assert answers
    assert answers[0] != idle


def test_a_fork_of_this_process_has_children_of_its_own(children: ChildPool, idle: bytes) -> None:
    """They end with it."""

    def call(sender: Any) -> None:
        sender.send(children.call(child_id))
        signal.pause()

    with forked(call) as fork:
        child = psutil.Process(int(fork.message(60)))
        assert child.ppid() != psutil.Process(int(idle)).ppid()
    wait_for(lambda: is_gone(child.pid))
    assert children.call(child_id) == idle


def test_a_child_that_keeps_memory_is_replaced(children: ChildPool, idle: bytes) -> None:
    """Above a quarter of its limit it takes no further call."""
    assert children.call(keep, 60 * MB) == idle
    assert children.call(child_id) != idle


def test_a_child_is_replaced_after_many_calls(children: ChildPool, idle: bytes) -> None:
    """Whatever it has answered."""
    answers = {children.call(child_id) for _ in range(pool.MAX_CALLS)}
    assert len(answers) == 2


def test_a_call_waits_for_a_free_child_for_a_time() -> None:
    """Then it is refused: bodies do not queue up without a bound."""
    children = ChildPool(Limits(200 * MB, 60.0), 1, [], wait_s=0.05)

    def wait() -> None:
        with pytest.raises(ChildDied):
            children.call(hang)

    first = threading.Thread(target=wait)
    pid = int(children.call(child_id))
    first.start()
    while psutil.Process(pid).cpu_times().user < 0.05:
        pass
    with pytest.raises(NoChild):
        children.call(child_id)
    os.kill(pid, signal.SIGTERM)
    first.join()
    assert children.call(child_id)


def test_children_end_with_a_process_that_is_killed() -> None:
    """So does their fork server."""
    program = (
        "import os, sys\n"
        "import psutil; from controlplane.child_processes.confinement import Limits\n"
        "from controlplane.child_processes.pool import ChildPool\n"
        "from tests.support.calls import child_id\n"
        "pool = ChildPool(Limits(2 ** 28, 9.0), 1, [])\n"
        "pool.call(child_id)\n"
        "children = psutil.Process().children(recursive=True)\n"
        "print(*(child.pid for child in children), flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    ids = [int(word) for word in process.stdout.readline().split()]
    started = [psutil.Process(pid) for pid in ids]
    assert len(started) >= 2
    process.kill()
    process.wait()
    psutil.wait_procs(started, timeout=30)
    assert not any(map(is_alive, started))
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()
