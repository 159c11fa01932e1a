"""The search for queries that end their process: forked children, each of which reports stages."""

import os
import signal
import threading
import time
from collections.abc import Collection

import pytest

from controlplane.wire import limits
from workers.pipeline.engine.failures import isolation, probe
from workers.pipeline.engine.failures.fault import QueryFault
from workers.pipeline.engine.failures.probe import find_culprits, probe_call, run_probe


def ends(bad: Collection[int]) -> probe.Evaluate:
    """Return an evaluation that ends its process for each of these queries."""

    def evaluate(queries: Collection[int]) -> None:
        for query in queries:
            isolation.enter_stage(isolation.MERGE, [query])
            if query in bad:
                os._exit(query)

    return evaluate


def test_each_of_several_culprits_has_its_reason_and_stage() -> None:
    reported: list[set[int]] = []
    culprits = find_culprits([2, 4, 5, 9], ends([4, 9]), lambda known: reported.append(set(known)))
    assert {query: fault.why[-1] for query, fault in culprits.items()} == {4: "4", 9: "9"}
    assert {fault.stage for fault in culprits.values()} == {isolation.MERGE}
    # The first culprit is known while the second one is searched for.
    assert {4} in reported


def test_a_stage_keeps_the_queries_of_the_stage_before() -> None:
    stages: list[tuple[str, list[int]]] = []
    with isolation.report_stages(lambda stage, some: stages.append((stage, list(some)))):
        isolation.enter_stage(isolation.MERGE, [3, 4])
        isolation.enter_stage(isolation.WINDOW)
        isolation.enter_stage(isolation.SAVE, [])
    isolation.enter_stage(isolation.JOIN, [5])
    assert stages == [(isolation.MERGE, [3, 4]), (isolation.WINDOW, [3, 4]), (isolation.SAVE, [])]


def test_queries_that_share_an_evaluation_fail_together() -> None:
    def evaluate(queries: Collection[int]) -> None:
        if 3 in queries:
            isolation.enter_stage(isolation.EVALUATE, [3, 8])
            os._exit(1)

    assert find_culprits([1, 3, 8], evaluate).keys() == {3, 8}


def test_a_child_that_makes_no_progress_is_killed_without_another_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(limits.CALL_SECONDS, "0.02")
    limits.call_seconds.cache_clear()
    waits: list[float] = []
    sleep, own = time.sleep, threading.get_ident()

    def waited(seconds: float) -> None:
        # Threads of tests before this one sleep, too.
        if threading.get_ident() == own:
            waits.append(seconds)
        else:
            sleep(seconds)

    monkeypatch.setattr(time, "sleep", waited)
    outcome = run_probe([1], lambda _: signal.pause())
    limits.call_seconds.cache_clear()
    assert outcome.problem.startswith("made no progress")
    assert waits == []


def test_a_child_that_stops_reporting_without_an_end_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(limits.CALL_SECONDS, "0.02")
    limits.call_seconds.cache_clear()

    def silent(_: Collection[int]) -> None:
        os.closerange(3, 1024)
        signal.pause()

    outcome = run_probe([1], silent)
    limits.call_seconds.cache_clear()
    assert outcome.problem.endswith("signal SIGKILL")


def test_a_call_that_ends_its_process_is_a_fault() -> None:
    probe_call(lambda: None)
    with pytest.raises(QueryFault):
        probe_call(lambda: os._exit(5))
