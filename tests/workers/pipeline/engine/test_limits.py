"""Limits of users' code: time by a signal, memory by the process's limit."""

import itertools
import json
import os
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from controlplane.wire import limits
from controlplane.wire.language.registered import aggregate, function
from tests.workers.pipeline.engine.test_advance import seen_windows
from tests.workers.pipeline.engine.warehouse import computation, group_of, readings
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.failures.fault import QueryFault, user_code
from workers.pipeline.engine.store import MemoryStore

GOOD = computation({"n": "count(*)", "total": "sum(grams)"})


@function(takes=("float",), gives="float", name="test_loops")
def loops(values: Any) -> Any:
    while True:
        with suppress(Exception):
            time.sleep(0.001)


@function(takes=("float",), gives="float", name="test_eats_memory")
def eats_memory(values: Any) -> Any:
    kept = []
    while True:
        kept.append(np.ones(8 << 20, np.uint8))


@aggregate(takes="float", gives="float", name="test_merges_for_ever")
class MergesForEver:
    """Ends in no time only while there is nothing to merge."""

    def partial(self, values: Any) -> bytes:
        return b"."

    def merge(self, left: bytes, right: bytes) -> bytes:
        while True:
            pass

    def result(self, state: bytes) -> float:
        return 0.0


@pytest.fixture(autouse=True)
def short_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(limits.CALL_SECONDS, "0.2")
    limits.call_seconds.cache_clear()
    yield
    limits.call_seconds.cache_clear()


def tasks_with(value: str) -> Tasks:
    return Tasks.of([group_of(GOOD, [1]), group_of(computation({"bad": value}), [2, 3])])


def alone() -> dict[Any, Any]:
    found = advance_state(MemoryStore(), Tasks.of([group_of(GOOD, [1])]), readings(200), {}, 0)
    return seen_windows(found)


def test_a_loop_in_a_users_function_is_a_fault() -> None:
    found = advance_state(MemoryStore(), tasks_with("sum(test_loops(grams))"), readings(200), {}, 0)
    assert {query: fault.why for query, fault in found.faults.items()} == dict.fromkeys(
        (2, 3),
        "test_loops took longer than 0.2 s: make it faster, or raise WEIR_CALL_SECONDS",
    )
    assert seen_windows(found) == alone()


def test_a_loop_in_a_users_merge_is_a_fault() -> None:
    tasks, store = tasks_with("test_merges_for_ever(grams)"), MemoryStore()
    assert advance_state(store, tasks, readings(200), {}, 0).faults == {}
    found = advance_state(store, tasks, readings(200, seed=2), {}, 1)
    assert {query: fault.stage for query, fault in found.faults.items()} == {2: "merge", 3: "merge"}
    assert found.faults[2].why.startswith("MergesForEver took longer")


@function(takes=("float",), gives="float", name="test_leaves")
def leaves(values: Any) -> Any:
    sys.exit("no")


def test_an_exit_in_a_users_function_is_a_fault() -> None:
    """A worker ends by `SystemExit`, which is no `Exception`."""
    found = advance_state(
        MemoryStore(), tasks_with("sum(test_leaves(grams))"), readings(200), {}, 0
    )
    assert {fault.why for fault in found.faults.values()} == {"test_leaves raised SystemExit: no"}
    assert found.faults.keys() == {2, 3}
    assert seen_windows(found) == alone()


def test_a_call_that_no_signal_interrupts_ends_its_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In compiled code; the next attempt at the task finds the query in a child."""
    monkeypatch.setattr("workers.pipeline.engine.failures.fault._ENDS_LATER_S", 0.1)
    child = os.fork()
    if child == 0:
        with user_code("f"):
            sum(itertools.repeat(0))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_limits_are_nested_and_leave_nothing_behind() -> None:
    """The outer limit holds within an inner one, and after it."""
    started = time.monotonic()
    with pytest.raises(limits.TimeLimit):
        sleep_within_two_limits()
    with pytest.raises(QueryFault, match="longer"), limits.time_limit(0.1), user_code("f"):
        time.sleep(5)
    # Both would sleep for 5 s.
    assert time.monotonic() - started < 5
    time.sleep(0.25)


def sleep_within_two_limits() -> None:
    with limits.time_limit(0.2):
        with limits.time_limit(5):
            pass
        time.sleep(5)


def test_eating_memory_is_a_fault_and_not_the_end_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(limits.CALL_SECONDS, "30")

    def evaluate() -> Any:
        limits.call_seconds.cache_clear()
        used = re.search(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text())
        assert used is not None
        os.environ[limits.WORKER_MEMORY_MB] = str(max(256, int(used[1]) // 1024 + 200))
        limits.limit_memory.cache_clear()
        assert limits.limit_memory() == resource.getrlimit(resource.RLIMIT_DATA)[0]
        tasks = tasks_with("sum(test_eats_memory(grams))")
        found = advance_state(MemoryStore(), tasks, readings(3_000), {}, 0)
        windows = sorted(map(str, seen_windows(found).items()))
        return {query: fault.why for query, fault in found.faults.items()}, windows

    faults, windows = in_child(evaluate)
    assert faults.keys() == {"2", "3"}
    assert faults["2"].startswith("MemoryError")
    plain = advance_state(MemoryStore(), Tasks.of([group_of(GOOD, [1])]), readings(3_000), {}, 0)
    assert windows == sorted(map(str, seen_windows(plain).items()))


def in_child(work: Callable[[], Any]) -> Any:
    """Return what a forked child makes, through JSON: its limits are not this process's."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        found = json.load(answer)
    os.waitpid(child, 0)
    return found
