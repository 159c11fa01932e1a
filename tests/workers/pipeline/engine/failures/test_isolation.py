"""An exception in any stage of the engine is a fault of one query; all others are as without it."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from controlplane.wire.aggregates.state_schema import from_bytes, schema_named
from controlplane.wire.language.registered import aggregate, function
from controlplane.wire.routing.drop_rules import DropRule
from tests.workers.pipeline.engine.given import changed_rows
from tests.workers.pipeline.engine.test_advance import seen_windows
from tests.workers.pipeline.engine.warehouse import computation, group_of, readings
from workers.pipeline.engine import advance, final_aggregation, partial_aggregation
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.subscriptions import Intake, NodeGroup, Subscription
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.evaluation.records import is_task_column, task_column
from workers.pipeline.engine.failures.fault import FaultReason
from workers.pipeline.engine.failures.isolation import run_isolated
from workers.pipeline.engine.final_aggregation import merge_parts
from workers.pipeline.engine.partial_aggregation import BatchChanges
from workers.pipeline.engine.storage import pages, state_transfer
from workers.pipeline.engine.store import MemoryStore

BAD = 7
SHARED = computation({"n": "count(*)", "heavy": "max(grams)", "boxes": "count_distinct(box)"})
SPLIT = computation({"total": "sum(grams)"}, window_s=2.0, slide_s=1.0)
PAIRS = computation({"n": "count(*)"}, key=["a.shelf"], right=[2], on=[["shelf", "shelf"]],
                    where="a.box % 5 = b.box % 5")  # fmt: skip
DROPS = Intake(drop_rules=((1, DropRule.of(0.5, seed=2)),))


@aggregate(takes="float", gives="float", name="test_heaviest")
class Heaviest:
    """The largest number, kept as eight bytes."""

    def partial(self, values: Any) -> bytes:
        return np.float64(values.max()).tobytes()

    def merge(self, left: bytes, right: bytes) -> bytes:
        return max(left, right, key=lambda state: np.frombuffer(state)[0])

    def result(self, state: bytes) -> float:
        return float(np.frombuffer(state)[0])


OWN = computation({"top": "test_heaviest(grams)"})


def everything() -> Tasks:
    """Return queries of every kind; those of one computation share it, and 7 is among them."""
    return Tasks.of(
        [
            group_of(SHARED, [1, 2, 3, BAD, 8]), group_of(SPLIT, [17, 23], tasks=3),
            group_of(SPLIT, [24], intake=DROPS), group_of(PAIRS, [33]), group_of(OWN, [39, 40]),
        ]
    )  # fmt: skip


def run(tasks: Tasks, store: MemoryStore | None = None) -> BatchChanges:
    """Return what three batches changed, the second with late records, and all faults."""
    store, found = MemoryStore() if store is None else store, BatchChanges()
    for batch in range(3):
        records = readings(90, batch, late=10 * (batch == 1))
        newest = records.newest()
        found.take(advance_state(store, tasks.without(found.faults), records, newest, batch))
    return found


def has(query: int, rows: Any) -> bool:
    return bool((np.asarray(rows["query"]) == query).any())


Guilty = Callable[..., bool]
# By stage: where a function is called, and whether a call is one for the query.
STAGES: dict[str, tuple[Any, str, Callable[[int], Guilty]]] = {
    "evaluate": (partial_aggregation, "panes_of", lambda query: lambda _, computed, *__: (
        computed == computation_of(query))),
    "assign": (NodeGroup, "owned", lambda query: lambda group, *_: serves(group, query)),
    "count": (partial_aggregation, "late_records", lambda query: lambda group, *_: (
        serves(group, query))),
    "merge": (advance, "merge_state", lambda query: lambda _, state, added, *__: (
        has(query, state) or has(query, added))),
    "window": (advance, "changed_windows", lambda query: lambda _, state, *__: (
        has(query, state.rows))),
    "join": (advance, "join_windows", lambda query: lambda _, one, __: one == query),
}  # fmt: skip


def serves(group: NodeGroup, query: int) -> bool:
    return any(one.query == query for one in group.subscriptions)


def computation_of(query: int) -> Any:
    return everything().members[query].computation


def fails(
    monkeypatch: pytest.MonkeyPatch, place: Any, name: str, guilty: Guilty, error: Exception
) -> None:
    """Let a function raise where it is called for the query."""
    real = getattr(place, name)

    def called(*given: Any, **schema_named: Any) -> Any:
        if guilty(*given):
            raise error
        return real(*given, **schema_named)

    monkeypatch.setattr(place, name, called)


def windows_without(query: int, found: BatchChanges) -> dict[Any, Any]:
    return {place: row for place, row in seen_windows(found).items() if place[1] != query}


@pytest.mark.parametrize(
    ("stage", "query", "error"),
    [("evaluate", 40, KeyError("shelf")), ("evaluate", 24, MemoryError("no")),
     ("assign", BAD, pa.ArrowInvalid("x")), ("assign", 17, KeyError("task of 17")),
     ("count", 23, IndexError(3)), ("merge", BAD, MemoryError("large")),
     ("merge", 39, pa.ArrowInvalid("x")), ("window", 8, OverflowError()),
     ("window", 23, MemoryError()), ("join", 33, RecursionError("deep"))],
)  # fmt: skip
def test_an_exception_in_a_stage_is_a_fault_of_its_query(
    monkeypatch: pytest.MonkeyPatch, stage: str, query: int, error: Exception
) -> None:
    tasks = everything()
    concerned = set(tasks.members)
    if stage == "evaluate":
        concerned = {one for one in concerned if computation_of(one) == computation_of(query)}
    alone = run(tasks.without(concerned if stage == "evaluate" else {query}))
    place, name, guilty = STAGES[stage]
    fails(monkeypatch, place, name, guilty(query), error)
    found = run(tasks)
    failed = concerned if stage == "evaluate" else {query}
    assert set(found.faults) == failed
    fault = found.faults[query]
    assert (fault.stage, fault.why) == (stage, f"{type(error).__name__}: {error}")
    sample = json.loads(fault.sample)
    assert sample
    assert len(fault.sample) <= 2_000
    others = {place: row for place, row in seen_windows(found).items() if place[1] not in failed}
    assert others == seen_windows(alone)


def test_rows_that_cannot_be_written_are_a_fault_of_their_query(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All others of the same page are written."""
    tasks, store, plain = everything(), MemoryStore(), MemoryStore()
    run(tasks.without({BAD}), plain)
    for place in (pages, advance):
        fails(monkeypatch, place, "to_bytes", lambda rows: has(BAD, rows), pa.ArrowInvalid("large"))
    found = run(tasks, store)
    assert {query: fault.stage for query, fault in found.faults.items()} == {BAD: "save"}
    assert rows_in(store) == rows_in(plain)


def rows_in(store: MemoryStore) -> dict[str, Any]:
    """Return the rows of each page in an order of their own."""
    return rows_of({name: data for name, data in store.items() if "/" in name})


def rows_of(forms: Mapping[str, bytes]) -> dict[str, Any]:
    kept = {
        name: from_bytes(schema_named(name.partition("/")[0]), data) for name, data in forms.items()
    }
    return {name: sorted(rows.to_pylist(), key=str) for name, rows in kept.items()}


@pytest.mark.parametrize("stage", ["export", "import"])
def test_state_that_cannot_move_is_a_fault_of_its_query(
    monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """The other tasks arrive with all that they have."""
    tasks, store, there = everything(), MemoryStore(), MemoryStore()
    run(tasks, store)
    moved = [(query, 0) for query in (1, BAD, 39)]
    plain = state_transfer.export_state(MemoryStore(store), moved, {})
    faults: dict[int, FaultReason] = {}
    if stage == "export":
        fails(monkeypatch, state_transfer, "to_bytes", lambda rows: has(BAD, rows), MemoryError())
    else:
        fails(
            monkeypatch,
            state_transfer,
            "merge_state",
            lambda _, __, rows, ___: has(BAD, rows),
            KeyError(1),
        )
    states = state_transfer.export_state(store, moved, faults)
    state_transfer.import_state(there, tasks, states, faults)
    assert {query: fault.stage for query, fault in faults.items()} == {BAD: stage}
    again = state_transfer.export_state(there, moved, {})
    assert again[BAD, 0] == {}
    for task in ((1, 0), (39, 0)):
        assert rows_of(again[task]) == rows_of(plain[task])


def test_damaged_state_is_a_fault_of_its_query() -> None:
    tasks, store, there = everything(), MemoryStore(), MemoryStore()
    run(tasks, store)
    states = state_transfer.export_state(store, [(1, 0), (BAD, 0)], {})
    states[BAD, 0] = dict.fromkeys(states[BAD, 0], b"no Arrow")
    faults: dict[int, FaultReason] = {}
    state_transfer.import_state(there, tasks, states, faults)
    assert {query: fault.stage for query, fault in faults.items()} == {BAD: "import"}
    assert rows_of(state_transfer.export_state(there, [(1, 0)], {})[1, 0]) == rows_of(states[1, 0])


def test_an_aggregator_node_merges_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the query is kept; what was kept before leaves with it."""
    tasks = everything()
    parts: dict[int, dict[str, list[Any]]] = {}
    for name, _, rows in changed_rows(run(tasks)):
        for query in (1, BAD):
            mine = rows.filter(pa.array(np.asarray(rows["query"]) == query))
            parts.setdefault(query, {}).setdefault(name, []).append(mine)
    store, plain = MemoryStore(), MemoryStore()
    alone, _ = merge_parts(plain, tasks.members, {1: parts[1]}, {})
    fails(monkeypatch, final_aggregation, "_merge",
          lambda _, __, new, *___: any(has(BAD, r) for r in new),
          ValueError("no"))  # fmt: skip
    found, faults = merge_parts(store, tasks.members, parts, {})
    assert (faults[BAD].stage, faults[BAD].why) == ("aggregator", "ValueError: no")
    assert [rows.to_pylist() for _, _, rows in found] == [rows.to_pylist() for _, _, rows in alone]
    assert store == plain


def test_records_of_other_streams_lack_what_a_query_is_told_of_its_own() -> None:
    """A key is split over one of two streams; a batch has records of the other one alone."""
    mine = Subscription(51, 1, (1,), 2, np.ones(2, np.bool_))
    assert [is_task_column(name) for name in (task_column(51), "box")] == [True, False]
    split = NodeGroup.of(SPLIT, [mine], Intake(task_column(51)))
    tasks = Tasks.of([split, group_of(SHARED, [2])])
    other = readings(40, streams=(2,))
    found = advance_state(MemoryStore(), tasks, other, {}, 0)
    assert found.faults == {}
    assert {place[1] for place in seen_windows(found)} == {2}


def test_a_query_of_one_stream_drops_its_own_records_alone() -> None:
    """A batch has records of another stream: neither kept nor dropped, they are not its own."""
    one = Subscription(24, 1, (1,), 1, np.ones(1, np.bool_))
    tasks = Tasks.of([NodeGroup.of(computation({"n": "count(*)"}), [one], DROPS)])
    kept = []
    for streams in ((1,), (1, 2)):
        records = readings(40 * len(streams), streams=streams)
        rows = changed_rows(advance_state(MemoryStore(), tasks, records, {}, 0))
        kept.append(sum(sum(table["s0"].to_pylist()) for name, _, table in rows if name[0] == "s"))
    assert [0 < count < 40 for count in kept] == [True, True]


def test_queries_that_an_error_names_are_left_out_at_once() -> None:
    """All others are computed together, not in halves."""

    class Named(ValueError):
        queries = (BAD,)

    def work(queries: Sequence[int]) -> list[int]:
        if BAD in queries:
            raise Named("no")
        return list(queries)

    faults: dict[int, FaultReason] = {}
    assert run_isolated("merge", [1, 2, BAD, 8, 9], work, faults) == [[1, 2, 8, 9]]
    assert set(faults) == {BAD}


@function(takes=("int",), gives="int", name="test_odd_box")
def odd_box(values: Any) -> Any:
    if (values == 77).any():
        raise ValueError("77 is odd")
    return values


def test_the_sample_is_the_record_on_which_the_query_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partial_aggregation, "_SEARCH_SECONDS", math.inf)
    records = readings(64)
    boxes = np.arange(64)
    boxes[41] = 77
    at = records.columns.schema.get_field_index("box")
    records = replace(records, columns=records.columns.set_column(at, "box", pa.array(boxes)))
    tasks = Tasks.of([group_of(computation({"s": "sum(test_odd_box(box))"}), [5])])
    (fault,) = advance_state(MemoryStore(), tasks, records, {}, 0).faults.values()
    assert fault.why == "test_odd_box raised ValueError: 77 is odd"
    assert [row["box"] for row in json.loads(fault.sample)] == [77]


def test_a_batch_that_does_not_fit_is_taken_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shortage that grows with the records is not the fault of a query; the windows are equal."""
    tasks = everything()
    records = readings(5_000)
    plain = advance_state(MemoryStore(), tasks, records, {}, 0)
    sizes = []

    def short(taken: Any, *_: Any) -> bool:
        sizes.append(len(taken))
        return len(taken) > 1_300

    fails(monkeypatch, partial_aggregation, "panes_of", short, MemoryError())
    found = advance_state(MemoryStore(), tasks, records, {}, 0)
    assert found.faults == {}
    assert max(sizes) == 5_000
    assert seen_windows(found) == seen_windows(plain)
    assert found.dropped == plain.dropped
    monkeypatch.undo()
    fails(
        monkeypatch,
        partial_aggregation,
        "panes_of",
        lambda _, one, *__: one == SHARED,
        MemoryError("big"),
    )
    found = advance_state(MemoryStore(), tasks, records, {}, 0)
    assert set(found.faults) == {1, 2, 3, BAD, 8}
    assert windows_without(99, found) == seen_windows(
        advance_state(MemoryStore(), tasks.without(found.faults), records, {}, 0)
    )


def test_a_process_that_is_out_of_memory_fails_no_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is not the query that asks for too much: the batch is tried again by another."""
    fails(monkeypatch, partial_aggregation, "panes_of", lambda *_: True, MemoryError())
    monkeypatch.setattr("workers.pipeline.engine.failures.isolation.has_headroom", lambda: False)
    with pytest.raises(MemoryError, match="stage evaluate"):
        run(everything())
