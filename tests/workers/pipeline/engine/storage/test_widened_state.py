"""State under a wider schema: the rows are those of a column that was always wide."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation, computation_of
from controlplane.wire.query_text import QueryText
from tests.workers.pipeline.engine.running import batch_of
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.subscriptions import NodeGroup, Subscription
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.failures.fault import FaultReason
from workers.pipeline.engine.storage.widening import Widening, detect_widening
from workers.pipeline.engine.store import MemoryStore

# By query: `w` stays as it is, `v` becomes wider.
TEXTS = {
    1: QueryText({"n": "count(*)", "sum": "sum(v)", "same": "top_k(w, 2)", "top": "top_k(v, 2)"}),
    2: QueryText({"n": "count(*)", "same": "top_k(w, 2)"}, key=["v"]),
    3: QueryText({"n": "count(*)", "top": "top_k(w, 2)"}, key=["w"]),
    4: QueryText({"n": "count(*)", "top": "top_k(v, 2)"}, key=["w"]),
}
FIRST: dict[str, list[int | None]] = {"v": [1, 2, 2, 3, None], "w": [7, 7, 8, 9, 9]}


def computations(kind: Kind) -> dict[int, Computation]:
    kinds = {"ts": Kind.TIME, "v": kind, "w": Kind.INT}
    return {query: computation_of(text, kinds) for query, text in TEXTS.items()}


def tasks_of(kind: Kind) -> Tasks:
    mine = np.ones(1, np.bool_)
    return Tasks.of(
        NodeGroup.of(computation, [Subscription(query, 1, (1,), 1, mine)])
        for query, computation in computations(kind).items()
    )


def state_of(kind: Kind, columns: Mapping[str, Any]) -> tuple[MemoryStore, Tasks]:
    """Return the state after a batch of records, as a node keeps it."""
    store, tasks = MemoryStore(), tasks_of(kind)
    assert detect_widening(store, 1, tasks, {}) is None
    assert not advance_state(store, tasks, batch_of(columns), {}, 1).faults
    return store, tasks


def open_windows(store: MemoryStore, tasks: Tasks) -> dict[str, list[Any]]:
    """Return the rows of all open windows by the name of their schema, in a fixed order."""
    changed = advance_state(store, tasks, None, {}, 2, republish=True)
    rows: dict[str, list[Any]] = {}
    for name, _, table in changed.windows:
        rows.setdefault(name, []).extend(table.to_pylist())
    return {name: sorted(some, key=str) for name, some in rows.items() if some}


def widened() -> tuple[MemoryStore, Tasks, Widening, list[Any]]:
    store, _ = state_of(Kind.INT, FIRST)
    tasks, faults = tasks_of(Kind.FLOAT), dict[int, FaultReason]()
    widening = detect_widening(store, 2, tasks, {})
    assert widening is not None
    retired = widening.migrate(store, tasks, faults)
    assert faults == {}
    return store, tasks, widening, retired


def test_windows_are_those_of_a_column_that_was_always_wide() -> None:
    """Sums, keys and the values of the second of two `top_k`; other queries keep their rows."""
    store, tasks, _, _ = widened()
    wide = {**FIRST, "v": pa.array(FIRST["v"], pa.float64())}
    expected = open_windows(*state_of(Kind.FLOAT, wide))
    assert len(expected) > 3
    assert open_windows(store, tasks) == expected
    assert detect_widening(store, 2, tasks, {}) is None


def test_windows_under_keys_of_another_kind_are_taken_away() -> None:
    """Those of the query whose key becomes wider, once; they have less than no records."""
    _, _, _, retired = widened()
    rows = [row for _, _, table in retired for row in table.to_pylist()]
    assert {row["query"] for row in rows} == {2}
    assert sorted(row["k0"] or 0 for row in rows) == [0, 1, 2, 3]
    assert {row["s0"] for row in rows} == {-1}
    assert {name[0] for name, _, _ in retired} == {"s"}


def test_closed_windows_are_not_taken_away() -> None:
    store, _ = state_of(Kind.INT, FIRST)
    advance_state(store, tasks_of(Kind.INT), batch_of({"v": [5], "w": [5]}), {1: 10**9}, 2,
                  closes=False)  # fmt: skip
    tasks = tasks_of(Kind.FLOAT)
    widening = detect_widening(store, 2, tasks, {})
    assert widening is not None
    retired = widening.migrate(store, tasks, {})
    assert [len(table) for _, _, table in retired if len(table)] == []
