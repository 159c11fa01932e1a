"""Queries that end or hang the process of a node: found in forked children, and left out."""

import faulthandler
import itertools
import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from pyspark import TaskContext

from controlplane.wire import attempts, limits
from controlplane.wire.language.registered import aggregate, function
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import AssignStream
from controlplane.wire.routing.query_actions import AddQuery
from tests.support.tables import compiled
from tests.workers.pipeline.split_nodes.test_dispatch import entry
from workers.pipeline.engine.failures.probe import find_culprits
from workers.pipeline.engine.store import MemoryStore
from workers.pipeline.exchange.envelope import BatchHeader, NodeInput
from workers.pipeline.nodes.node_batch import NodeBatch
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.split_nodes.dispatch import dispatch

POISON = 13


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What hangs has half a second; a child of a busy machine gets its reports through in it."""
    monkeypatch.setattr("workers.pipeline.engine.failures.probe._TIMEOUT_FACTOR", 1.0)
    monkeypatch.setenv(limits.CALL_SECONDS, "0.6")
    limits.call_seconds.cache_clear()
    yield
    limits.call_seconds.cache_clear()


@function(takes=("int",), gives="int", name="test_exits")
def exits(values: Any) -> Any:
    if (values == POISON).any():
        os._exit(5)
    return values


@function(takes=("int",), gives="int", name="test_hangs")
def hangs(values: Any) -> Any:
    if (values == POISON).any():
        # One call of compiled code, which no signal interrupts.
        sum(itertools.repeat(0))
    return values


@aggregate(takes="int", gives="int", name="test_crashes")
class Crashes:
    """Dies of a signal in merging, which is done for all queries together."""

    def partial(self, values: Any) -> bytes:
        return bytes([int((values == POISON).any())])

    def merge(self, left: bytes, right: bytes) -> bytes:
        if right == b"\1":
            faulthandler.disable()
            os.kill(os.getpid(), signal.SIGSEGV)
        return left

    def result(self, state: bytes) -> int:
        return state[0]


class Tables:
    """The cache of one table."""

    def __init__(self, table: CompiledTable) -> None:
        self.table = table

    def of_batch(self, _leaving: int | None, _version: int) -> CompiledTable:
        return self.table


VALUES = {
    10: "count(*)", 11: "max(car)", 12: "sum(test_exits(car))", 14: "max(test_hangs(car))",
    15: "test_crashes(car)", 16: "test_crashes(y)", 17: "count(*)",
}  # fmt: skip
BAD = {12: "exit code 5", 14: "made no progress", 15: "signal SIGSEGV"}


def turn_of(
    client: "redis.Redis", store: MemoryStore, batch: int, attempt: int, *cars: int
) -> NodeBatch:
    texts = {query: json.dumps(QueryText({"v": value}).to_json())
             for query, value in VALUES.items()}  # fmt: skip
    table = compiled(
        AssignStream(1, 0),
        *(AddQuery(query, 0, 0, (1,), text) for query, text in texts.items()),
    )
    (envelopes,) = dispatch({1: [entry(f"{batch}-0", *cars)]}, table, 1, {}).envelopes
    header = BatchHeader(
        batch, 1, None, None, 0, None, has_backlog=False, split=0, nodes=1, attempt=attempt
    )
    return NodeBatch(client, "c", Tables(table), store, NodeInput(0, header, envelopes, 0))  # type: ignore[arg-type]


def test_a_batch_that_ends_its_process_is_evaluated_without_the_culprits(
    redis_client: "redis.Redis",
) -> None:
    """By exit, by an endless call in compiled code, and by a crash in what all share."""
    store = MemoryStore()
    turn_of(redis_client, store, 1, 1, 1, 2).run()
    before = dict(store)
    found = turn_of(redis_client, store, 2, attempts.FAILURES + 1, POISON, 3).run()
    faults = {query: (why, stage, sample) for query, _, why, stage, sample in found.report.faults}
    assert faults.keys() == BAD.keys()
    for query, told in BAD.items():
        why, stage, sample = faults[query]
        assert told in why
        assert stage == ("merge" if query == 15 else "evaluate")
        assert POISON in [row["car"] for row in json.loads(sample)]
    evaluated = {query for _, _, rows in found.results for query in rows["query"].to_pylist()}
    assert evaluated == VALUES.keys() - BAD.keys()
    # A batch replayed after it finds the culprits in Redis; one after it in the node's state.
    again = MemoryStore(before)
    turn_of(redis_client, again, 2, attempts.FAILURES + 2, POISON, 3).run()
    assert again == store
    later = turn_of(redis_client, store, 3, 1, POISON).run()
    assert {fault[0] for fault in later.report.faults} == BAD.keys()


def test_a_task_that_has_failed_looks_for_culprits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    header = BatchHeader(1, 1, None, None, 0, None, has_backlog=False, split=0, nodes=1)
    assert header.of_task() == header
    context = TaskContext()
    monkeypatch.setattr(TaskContext, "_taskContext", context)
    for attempt, probes in ((0, False), (1, True), (3, True)):
        monkeypatch.setattr(context, "_attemptNumber", attempt)
        assert (header.of_task().attempt > attempts.FAILURES) == probes


def test_what_fails_without_a_query_has_no_culprit() -> None:
    assert find_culprits([1, 2], lambda _: 1 / 0) == {}

    def together(queries: Any) -> None:
        if len(queries) == 2:
            os._exit(1)

    assert find_culprits([1, 2], together) == {}


def test_many_queries_are_halved() -> None:
    """One of 500 is found without a report of stages, in a few children."""
    children = []

    def bad(queries: Any) -> None:
        if 321 in queries:
            os.kill(os.getpid(), signal.SIGKILL)

    found = find_culprits(range(500), bad, lambda _: children.append(1))
    assert found.keys() == {321}
    assert found[321].why.endswith("signal SIGKILL")
    assert len(children) < 25


def test_a_key_that_ends_the_process_of_a_split_node_goes_to_all_its_nodes() -> None:
    text = QueryText({"n": "count(*)"}, columns={"of": "test_exits(car)"}, key=["of"])
    table = compiled(
        AssignStream(1, 0),
        AddQuery(10, 0, 0, (1,), json.dumps(text.to_json()), ((0, 0, 2), (1, 2, 4))),
    )
    entries = {1: [entry("5-0", 1, POISON, 2)]}
    for (envelope,) in dispatch(entries, table, 2, {}, probe_first=True).envelopes:
        assert envelope.records.num_rows == 3


def test_attempts_are_counted_by_driver(redis_client: "redis.Redis") -> None:
    def begin(batch: int, driver: str) -> int:
        plan = attempts.BatchAttempt(batch, 0, "1-0", "2-0", 7, 3)
        return attempts.begin(redis_client, "c", plan, driver)

    assert attempts.newest(redis_client, "c") is None
    assert [begin(4, driver) for driver in "aabbc"] == [1, 1, 2, 2, 3]
    assert begin(5, "c") == 1
    assert begin(5, "d") == 2
    known = attempts.newest(redis_client, "c")
    assert known == attempts.BatchAttempt(5, 2, "1-0", "2-0", 7, 3)
    assert not known.is_stuck
    assert not attempts.is_skipped(redis_client, "c", 5)
    attempts.skip(redis_client, "c", 5)
    assert attempts.is_skipped(redis_client, "c", 5)
    assert not attempts.is_skipped(redis_client, "c", 6)
