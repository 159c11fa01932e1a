"""Nodes that share queries: however batches are cut and tasks move, the windows are the same."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.drop_rules import ALWAYS, DropRule
from tests.workers.pipeline.engine.evaluation.test_user_aggregates import TestRange
from tests.workers.pipeline.engine.given import changed_rows
from tests.workers.pipeline.engine.storage.test_window_state import COLUMNS, Row, records_of
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.subscriptions import (
    DIRECT,
    Intake,
    NodeGroup,
    Subscription,
    TaskOwnership,
)
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.evaluation.drop_rules import is_window_dropped, sample_hashes
from workers.pipeline.engine.evaluation.records import Int64s, task_column
from workers.pipeline.engine.partial_aggregation import BatchChanges
from workers.pipeline.engine.storage.state_transfer import export_state, import_state
from workers.pipeline.engine.store import MemoryStore

assert TestRange is not None  # registers test_range
BY_STREAM = computation_of(
    QueryText({"n": "count(*)", "mean": "mean(speed)"}, where="speed > -40", key=["stream"]),
    COLUMNS,
)
SPREAD = computation_of(
    QueryText({"n": "count(*)", "high": "max(speed)"}, key=["car", "name"], window_s=1.0,
              slide_s=0.4), COLUMNS
)  # fmt: skip
RICH = computation_of(
    QueryText({"r": "test_range(speed)", "d": "count_distinct(car)", "m": "median(speed)",
               "t": "top_k(name, 2)"}, window_s=2.0, slide_s=1.0), COLUMNS
)  # fmt: skip
# query: computation, streams, tasks; their first tasks share a page
QUERIES = {
    16: (BY_STREAM, (1, 2), 1),
    32: (BY_STREAM, (2,), 1),
    48: (SPREAD, (1, 2), 5),
    64: (RICH, (2,), 1),
}


def tasks_of(owned: set[tuple[int, int]]) -> Tasks:
    """Return what a node with these (query, task) has to compute."""
    groups: dict[Any, list[Subscription]] = {}
    for query, (computation, streams, tasks) in QUERIES.items():
        mine = np.array([(query, task) in owned for task in range(tasks)])
        if mine.any():
            one = Subscription(query, 1, streams, tasks, mine)
            groups.setdefault(computation, []).append(one)
    return Tasks.of(NodeGroup.of(computation, found) for computation, found in groups.items())


ALL = [(query, task) for query, (_, _, tasks) in QUERIES.items() for task in range(tasks)]


def seen_windows(found: Any) -> dict[Any, Any]:
    """Return the newest state of each window that changed, by everything that names it."""
    seen = {}
    for name, form, rows in changed_rows(found):
        for row in rows.to_pylist():
            identity = (name, *(row[column] for column in form.identity))
            seen[identity] = [row[column] for column, _ in form.merges]
    return seen


row = st.tuples(
    st.integers(1, 2),
    st.integers(0, 4_000),
    st.integers(1, 6),
    st.sampled_from(["a", "b", None]),
    st.one_of(st.none(), st.integers(-50, 50)),
)
moves = st.lists(st.tuples(st.integers(0, len(ALL) - 1), st.integers(0, 2)), max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(row, max_size=10), moves), min_size=1, max_size=5))
def test_windows_do_not_depend_on_batches_nor_on_where_tasks_are(
    steps: Sequence[tuple[Sequence[Row], Sequence[tuple[int, int]]]],
) -> None:
    nodes = [MemoryStore() for _ in range(3)]
    owner = {task: at % 3 for at, task in enumerate(ALL)}
    seen: dict[Any, Any] = {}
    for batch, (rows, moved) in enumerate(steps):
        records = records_of(rows, None) if rows else None
        for at, store in enumerate(nodes):
            mine = tasks_of({task for task, node in owner.items() if node == at})
            newest = {} if records is None else records.newest()
            seen |= seen_windows(advance_state(store, mine, records, newest, batch))
        for place, target in moved:
            task = ALL[place]
            carried = export_state(nodes[owner[task]], [task], {})
            owner[task] = target
            import_state(nodes[target], tasks_of({task}), carried, {})
    together = [row for rows, _ in steps for row in rows]
    alone: Any = {}
    if together:
        records = records_of(together, None)
        alone = seen_windows(advance_state(MemoryStore(), tasks_of(set(ALL)), records, {}, 0))
    assert seen == alone


def test_state_leaves_when_windows_close_and_queries_end() -> None:
    store, everything = MemoryStore(), tasks_of(set(ALL))
    rows = [(1, 0, 1, "a", 1), (2, 0, 1, "a", 1)]
    advance_state(store, everything, records_of(rows, None), {1: 0, 2: 0}, 0)
    # Much later: all windows of before have closed, and each page has had its turn.
    for batch in range(1, 17):
        late = records_of([(1, 10**9, 1, "a", 1)], 10**9)
        found = advance_state(store, everything, late, {1: 10**9, 2: 10**9}, batch)
    assert {name.partition("|")[0] for name in store if "/" in name} == {"s"}
    without = tasks_of({task for task in ALL if task[0] != 16})
    ended: set[int] = set()
    for batch in range(17, 33):
        found = advance_state(store, without, None, {}, batch)
        ended |= found.ended
    assert ended == {16}
    assert found.state_bytes == sum(len(value) for name, value in store.items() if "/" in name)


def test_a_new_run_begins_with_nothing() -> None:
    store = MemoryStore()
    records = records_of([(2, 0, 1, "a", 1)], None)
    advance_state(store, tasks_of({(32, 0)}), records, {2: 0}, 0)
    again = NodeGroup.of(BY_STREAM, [Subscription(32, 2, (2,), 1, np.array([True]))])
    found = advance_state(store, Tasks.of([again]), records, {2: 0}, 1)
    ((_, _, rows),) = changed_rows(found)
    assert rows["s0"].to_pylist() == [1]
    assert rows["run"].to_pylist() == [2]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 99), size=st.sampled_from([200, 400, 1000]), batch=st.integers(1, 3))
def test_windows_that_are_kept_are_whole_and_dropped_ones_are_not_there(
    seed: int, size: int, batch: int
) -> None:
    """A window drop leaves a subset of the exact results, also where windows overlap."""
    rng = np.random.default_rng(seed)
    rows: list[Row] = [
        (1, int(rng.integers(0, 4_000)), int(rng.integers(0, 3)), "a", int(rng.integers(0, 9)))
        for _ in range(200)
    ]
    query = QueryText({"n": "count(*)", "sum": "sum(speed)"}, key=["car"],
                      window_s=size / 1000, slide_s=0.2)  # fmt: skip
    computation = computation_of(query, COLUMNS)
    rule = DropRule(((ALWAYS, 0.5),), seed, size, 200, batch)
    records = records_of(rows, None)
    records = replace(records, extras={"luck": sample_hashes(1, "1-0", len(records))})
    one = Subscription(9, 0, (1,), 1, np.array([True]))
    found = []
    for intake in (DIRECT, Intake(drop_rules=((1, rule),), windows=((1, rule),))):
        tasks = Tasks.of([NodeGroup.of(computation, [one], intake)])
        changed = advance_state(MemoryStore(), tasks, records, {}, 1)
        found.append({
            (row["pane"], row["k0"]): (row["s0"], row["s2"])
            for _, _, table in changed_rows(changed) for row in table.to_pylist()
        })  # fmt: skip
    exact, subset = found
    starts = np.array(sorted({start for start, _ in exact}))
    kept = set(starts[~is_window_dropped(rule, starts)].tolist())
    assert subset == {place: value for place, value in exact.items() if place[0] in kept}


def test_what_an_edge_drops_is_counted_on_one_node() -> None:
    """Both nodes have all records, for another query; each counts those of its own tasks."""
    rng = np.random.default_rng(1)
    rows: list[Row] = [(1, at, int(rng.integers(0, 40)), "a", 1) for at in range(400)]
    records = records_of(rows, None)
    records = replace(records, extras={"luck": sample_hashes(1, "1-0", len(records))})
    intake = Intake(drop_rules=((1, DropRule.of(0.4, seed=3)),))
    found = []
    for mine in ([True, False, True], [False, True, False]):
        one = Subscription(9, 0, (1,), 3, np.array(mine))
        tasks = Tasks.of([NodeGroup.of(SPREAD, [one], intake)])
        found.append(advance_state(MemoryStore(), tasks, records, {}, 1))
    kept = sum(int(_taken_records(one).sum()) for one in found)
    dropped = [one.dropped[1, 9] for one in found]
    assert min(dropped) > 0
    assert sum(dropped) + kept == len(rows)


def test_records_that_waited_find_their_task_as_when_they_came() -> None:
    """The key grouping of the query may have changed since then."""
    rows: list[Row] = [(1, at, at % 40, "a", 1) for at in range(400)]
    plain, column = records_of(rows, None), task_column(9)
    chosen = replace(plain, extras={column: np.arange(400, dtype=np.uint64) % 3})
    one = Subscription(9, 0, (1,), 3, np.array([False, True, False]))
    by_key, by_column = (
        Tasks.of([NodeGroup.of(SPREAD, [one], intake)]) for intake in (DIRECT, Intake(column))
    )
    held = {9: TaskOwnership(0, [0, 1], column)}
    found = advance_state(MemoryStore(), by_key, chosen, {}, 1, by_key.within(held))
    assert _taken_records(found).sum() == np.count_nonzero(np.arange(400) % 3 == 1)
    then = advance_state(MemoryStore(), by_key, plain, {}, 1)
    found = advance_state(MemoryStore(), by_column, plain, {}, 1, by_column.within(by_key.owned()))
    assert _taken_records(found).sum() == _taken_records(then).sum() > 0


def test_records_of_streams_that_no_edge_drops_need_no_luck() -> None:
    """They come alone where nobody has reported on the other streams."""
    rows: list[Row] = [(1, at, at, "a", 1) for at in range(10)]
    one = Subscription(9, 0, (1, 2), 1, np.array([True]))
    tasks = Tasks.of([NodeGroup.of(SPREAD, [one], Intake(drop_rules=((2, DropRule.of(0.4)),)))])
    found = advance_state(MemoryStore(), tasks, records_of(rows, None), {}, 1)
    assert _taken_records(found).sum() == 10
    assert not any(found.dropped.values())


def _taken_records(changed: BatchChanges) -> Int64s:
    """Return the records that each task took."""
    return np.concatenate(changed.tasks)[:, 2]
