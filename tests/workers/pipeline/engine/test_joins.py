"""Joins: the pairs that a plain double loop finds, in whatever batches and tasks they come."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import redis

from controlplane.wire.query import BadQuery, computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.results.finalized import ResultQuery
from tests.support.sunk import report, write_batch
from tests.support.whole_results import read_windows
from tests.workers.pipeline.engine.storage.test_window_state import COLUMNS, Row, records_of
from tests.workers.pipeline.engine.test_advance import Memory
from workers.pipeline.engine import joins
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.subscriptions import NodeGroup, Subscription
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.storage.state_transfer import export_state, import_state

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


def plain(rows: Sequence[Row]) -> dict[Any, dict[str, Any]]:
    """Return every window by a double loop."""
    found: dict[Any, list[tuple[int, str | None]]] = defaultdict(list)
    for start in range(-500, 3_000, 500):
        inside = [row for row in rows if start <= row[1] < start + 1_000]
        for left in (row for row in inside if row[0] == 1):
            for right in (row for row in inside if row[0] == 2):
                if left[2] % 7 != right[2] % 7 or left[4] is None or right[4] is None:
                    continue
                if left[4] > right[4]:
                    found[start, left[2]].append((left[4] - right[4], right[3]))
    return {
        place: {
            "n": len(pairs),
            "faster": sum(gap for gap, _ in pairs),
            "names": len({name for _, name in pairs if name is not None}),
        }
        for place, pairs in found.items()
    }


def tasks_of(mine: Sequence[bool]) -> Tasks:
    one = Subscription(9, 0, (1, 2), TASKS, np.array(mine))
    return Tasks.of([NodeGroup.of(computation_of(PAIRED, COLUMNS), [one])])


@pytest.mark.parametrize("cuts", [1, 4, 20])
def test_pairs_are_those_of_a_double_loop(redis_client: "redis.Redis", cuts: int) -> None:
    """Over any batches; half-way a task moves to the other node with the records that wait."""
    stores, owned = [Memory(), Memory()], [[True, True, False], [False, False, True]]
    for batch, at in enumerate(np.array_split(np.arange(len(ROWS)), cuts), start=1):
        if batch == cuts // 2 + 1:
            states = export_state(stores[0], [(9, 1)])
            owned = [[True, False, False], [False, True, True]]
            import_state(stores[1], tasks_of(owned[1]), states)
        for node in (0, 1):
            records = records_of([ROWS[place] for place in at], None)
            changed = advance_state(stores[node], tasks_of(owned[node]), records, {}, batch)
            known = {9: ResultQuery(computation_of(PAIRED, COLUMNS), is_merged=True)}
            write_batch(redis_client, "c", report(batch, node), changed, known)
    windows = read_windows(redis_client, "c", 9, computation_of(PAIRED, COLUMNS))
    assert {(row.start_ms, row.key["a.car"]): row.values for row in windows} == plain(ROWS)


def test_a_window_closes_when_all_streams_have_passed_it() -> None:
    """A stream that is ahead does not close what the other may still need."""
    store, tasks = Memory(), tasks_of([True] * TASKS)
    advance_state(store, tasks, records_of(ROWS, None), {1: 60_000}, 1)
    kept = sum(len(data) for name, data in store.items() if name.startswith("j|"))
    assert kept > 0
    for batch in range(2, 20):
        advance_state(store, tasks, None, {2: 60_000}, batch)
    assert not [name for name in store if name.startswith("j|")]


def test_too_many_pairs_are_a_fault_of_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch goes on without it."""
    monkeypatch.setattr(joins, "MAX_PAIRS", 10)
    found = advance_state(Memory(), tasks_of([True] * TASKS), records_of(ROWS, None), {}, 1)
    assert found.windows == []
    assert found.faults[9].why.endswith("narrow its windows or what must be equal")


def test_a_join_that_cannot_be_is_refused_at_its_fields() -> None:
    wrong = QueryText({"n": "sum(speed)"}, key=["c.car"], right=[], on=[["car"], ["car", "name"]])
    with pytest.raises(BadQuery) as refusal:
        computation_of(wrong, COLUMNS)
    assert set(refusal.value.fields) == {"aggregates.n", "key", "right", "on.0", "on.1"}
    with pytest.raises(BadQuery) as refusal:
        computation_of(QueryText({"n": "sum(a.speed)"}, key=["car"]), COLUMNS)
    assert set(refusal.value.fields) == {"aggregates.n"}
