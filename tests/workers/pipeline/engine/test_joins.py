"""Joins: when their windows close, how many pairs there may be, and what is refused."""

from typing import Any

import numpy as np
import pytest

from controlplane.wire.language.registered import function
from controlplane.wire.query import BadQuery, computation_of
from controlplane.wire.query_text import QueryText
from tests.workers.pipeline.engine.storage.test_window_state import COLUMNS, Row, records_of
from workers.pipeline.engine import joins
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.subscriptions import NodeGroup, Subscription
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.store import MemoryStore

PAIRED = QueryText(
    {"n": "count(*)", "faster": "sum(a.speed - b.speed)", "names": "count_distinct(b.name)"},
    where="a.speed > b.speed",
    key=["a.car"],
    window_s=1.0,
    slide_s=0.5,
    lateness_s=0.5,
    right=[2],
    on=[["car % 7", "car % 7"]],
)
RNG = np.random.default_rng(11)
ROWS: list[Row] = [
    (
        int(RNG.integers(1, 3)),
        int(RNG.integers(0, 3_000)),
        int(RNG.integers(0, 20)),
        ["x", "y", None][int(RNG.integers(3))],
        [int(RNG.integers(0, 50)), None][int(RNG.random() < 0.1)],
    )
    for _ in range(120)
]
TASKS = 3


def all_tasks() -> Tasks:
    subscription = Subscription(9, 0, (1, 2), TASKS, np.ones(TASKS, np.bool_))
    return Tasks.of([NodeGroup.of(computation_of(PAIRED, COLUMNS), [subscription])])


def test_a_window_closes_when_all_streams_have_passed_it() -> None:
    """A stream that is ahead does not close what the other may still need."""
    store, tasks = MemoryStore(), all_tasks()
    advance_state(store, tasks, records_of(ROWS, None), {1: 60_000}, 1)
    kept = sum(len(data) for name, data in store.items() if name.startswith("j|"))
    assert kept > 0
    for batch in range(2, 20):
        advance_state(store, tasks, None, {2: 60_000}, batch)
    assert not [name for name in store if name.startswith("j|")]


def test_too_many_pairs_are_a_fault_of_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch goes on without it."""
    monkeypatch.setattr(joins, "MAX_PAIRS", 10)
    found = advance_state(MemoryStore(), all_tasks(), records_of(ROWS, None), {}, 1)
    assert found.windows == []
    assert found.faults[9].why.endswith("narrow its windows or what must be equal")


@function(takes=("int",), gives="int", name="test_not_nine")
def not_nine(values: Any) -> Any:
    if (values == 9).any():
        raise ValueError("9 is no speed")
    return values


def test_a_value_of_one_side_is_computed_for_its_records_alone() -> None:
    """The function cannot compute a record of the other side, which has another meaning."""
    query = QueryText({"v": "sum(test_not_nine(a.speed))"}, key=["a.car"], window_s=1.0,
                      right=[2], on=[["car", "car"]])  # fmt: skip
    one = Subscription(9, 0, (1, 2), 1, np.ones(1, np.bool_))
    tasks = Tasks.of([NodeGroup.of(computation_of(query, COLUMNS), [one])])
    for left, fails in ((5, False), (9, True)):
        rows: list[Row] = [(1, 100, 0, "x", left), (2, 100, 0, "x", 9)]
        found = advance_state(MemoryStore(), tasks, records_of(rows, None), {}, 1)
        assert (set(found.faults) == {9}, bool(found.windows)) == (fails, not fails)


def test_a_join_that_cannot_be_is_refused_at_its_fields() -> None:
    wrong = QueryText({"n": "sum(speed)"}, key=["c.car"], right=[], on=[["car"], ["car", "name"]])
    with pytest.raises(BadQuery) as refusal:
        computation_of(wrong, COLUMNS)
    assert set(refusal.value.fields) == {"aggregates.n", "key", "right", "on.0", "on.1"}
    with pytest.raises(BadQuery) as refusal:
        computation_of(QueryText({"n": "sum(a.speed)"}, key=["car"]), COLUMNS)
    assert set(refusal.value.fields) == {"aggregates.n"}
