"""What users' code raises is a fault of its query alone; all others have the same windows."""

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from controlplane.wire.aggregates.finalize import finalize
from controlplane.wire.language.registered import aggregate, function
from controlplane.wire.query import Computation, computation_of
from controlplane.wire.query_text import QueryText
from tests.workers.pipeline.engine.given import changed_rows
from tests.workers.pipeline.engine.storage.test_window_state import COLUMNS, Row, records_of
from tests.workers.pipeline.engine.test_advance import seen_windows
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.subscriptions import NodeGroup, Subscription
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.failures.fault import FaultReason, read_faults, write_faults
from workers.pipeline.engine.partial_aggregation import BatchChanges
from workers.pipeline.engine.store import MemoryStore

NO = FaultReason("no", "merge", "[{}]")
ROWS: list[Row] = [(1, 100 * at, at % 3, "a", at) for at in range(40)]


@function(takes=("int",), gives="int", name="test_fault_at_30")
def fault_at_30(values: Any) -> Any:
    if (values == 30).any():
        raise ValueError("30 is too much")
    return values


@function(takes=("int",), gives="int", name="test_too_few")
def too_few(values: Any) -> Any:
    return values[:-1]


@aggregate(takes="int", gives="int", name="test_fragile")
class Fragile:
    """The sum, up to 100."""

    def partial(self, values: Any) -> bytes:
        if (values == 31).any():
            raise ArithmeticError("31 is odd")
        return struct.pack("<q", values.sum())

    def merge(self, left: bytes, right: bytes) -> bytes:
        found = struct.unpack("<q", left)[0] + struct.unpack("<q", right)[0]
        if found > 100:
            raise OverflowError(f"{found} is too large")
        return struct.pack("<q", found)

    def result(self, state: bytes) -> int:
        return int(struct.unpack("<q", state)[0])


def computation(total: str, where: str = "") -> Computation:
    text = QueryText({"n": "count(*)", "total": total}, where=where, key=["car"], window_s=10.0)
    return computation_of(text, COLUMNS)


def tasks_of(computations: Mapping[int, Computation]) -> Tasks:
    one = np.ones(1, np.bool_)
    return Tasks.of(
        NodeGroup.of(computation, [Subscription(query, 1, (1,), 1, one)])
        for query, computation in computations.items()
    )


GOOD = {1: computation("sum(speed)"), 2: computation("test_fragile(speed)", "speed < 5")}


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (computation("sum(test_fault_at_30(speed))"), "test_fault_at_30 raised ValueError: 30 is"),
        (computation("sum(speed)", "test_fault_at_30(speed) > 1"), "test_fault_at_30 raised"),
        (computation("sum(test_too_few(speed))"), "test_too_few raised ValueError: gave (19,)"),
        (computation("test_fragile(speed)"), "test_fragile raised ArithmeticError: 31 is odd"),
        (computation("test_fragile(speed)", "speed <> 31"), "Fragile raised OverflowError"),
    ],
)
def test_a_fault_is_one_of_its_query(bad: Computation, why: str) -> None:
    """In evaluating, in aggregating, and in merging with what was there."""
    found, alone = run(tasks_of({**GOOD, 3: bad})), run(tasks_of(GOOD))
    assert seen_windows(found) == seen_windows(alone)
    assert set(found.faults) == {3}
    assert found.faults[3].why.startswith(why)


def run(tasks: Tasks) -> BatchChanges:
    """Return what the second of two batches changed, and the faults of both."""
    store = MemoryStore()
    first = advance_state(store, tasks, records_of(ROWS[:20], None), {}, 0)
    second = advance_state(store, tasks.without(first.faults), records_of(ROWS[20:], None), {}, 1)
    second.faults |= first.faults
    return second


def test_a_fault_is_remembered_until_its_query_leaves_or_begins_again() -> None:
    store = MemoryStore()
    write_faults(store, {3: (1, NO), 4: (1, FaultReason("never"))})
    assert read_faults(store, {3: 1, 4: 2, 5: 1}) == {3: (1, NO)}
    write_faults(store, {})
    assert read_faults(store, {3: 1}) == {}


@aggregate(takes="int", gives="int", name="test_no_result")
class NoResult(Fragile):
    """The sum, which cannot be told of a window that begins with 5."""

    def result(self, state: bytes) -> int:
        raise LookupError("no scale")


def test_a_result_that_raises_is_told_beside_the_other_values() -> None:
    """The window can be read: its other values are there, and the reason."""
    bad = computation("test_no_result(speed)", "speed < 5")
    found = advance_state(MemoryStore(), tasks_of({3: bad}), records_of(ROWS[:5], None), {}, 0)
    tables = {name: rows.append_column("batch", pa.array([1] * len(rows)))
              for name, _, rows in changed_rows(found)}  # fmt: skip
    rows = finalize(bad, tables)
    assert sum(row.values["n"] for row in rows) == 5
    for row in rows:
        assert row.values["total"] is None
        assert row.errors == {"total": "test_no_result raised LookupError: no scale"}
