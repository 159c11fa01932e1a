"""Windows that are complete at once are given out as blocks, and are what the state would give."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from tests.workers.pipeline.engine.evaluation.test_user_aggregates import TestRange
from tests.workers.pipeline.engine.given import changed_rows
from tests.workers.pipeline.engine.storage.test_window_state import COLUMNS, Row, records_of
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.subscriptions import NodeGroup, Subscription
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.partial_aggregation import BatchChanges
from workers.pipeline.engine.storage.state_transfer import export_state, import_state
from workers.pipeline.engine.store import MemoryStore

assert TestRange is not None  # registers test_range
COUNT = computation_of(
    QueryText({"n": "count(*)", "sum": "sum(speed)"}, key=["car"], window_s=1.0, lateness_s=0.5),
    COLUMNS,
)
RICH = computation_of(
    QueryText({"r": "test_range(speed)", "d": "count_distinct(car)", "t": "top_k(name, 2)"},
              window_s=0.5, lateness_s=0), COLUMNS
)  # fmt: skip
OVERLAPPING = computation_of(
    QueryText({"n": "count(*)"}, window_s=1.0, slide_s=0.5, lateness_s=0), COLUMNS
)
# query: computation, streams, tasks
QUERIES = {
    1: (COUNT, (1, 2), 3),
    2: (COUNT, (1, 2), 3),
    3: (COUNT, (2,), 1),
    4: (RICH, (1, 2), 1),
    5: (OVERLAPPING, (1,), 1),
}
TASKS = [(query, task) for query, (_, _, tasks) in QUERIES.items() for task in range(tasks)]


def tasks_of(owned: Collection[tuple[int, int]]) -> Tasks:
    groups: dict[Any, list[Subscription]] = {}
    for query, (computation, streams, tasks) in QUERIES.items():
        mine = np.array([(query, task) in owned for task in range(tasks)])
        if mine.any():
            one = Subscription(query, 1, streams, tasks, mine)
            groups.setdefault(computation, []).append(one)
    return Tasks.of(NodeGroup.of(computation, found) for computation, found in groups.items())


class Nodes:
    """Three nodes, and the newest that they have given out of each window; `blocks` in all."""

    def __init__(self, merged_elsewhere: Collection[int] = ()) -> None:
        self._apart = merged_elsewhere
        self._stores = [MemoryStore() for _ in range(3)]
        self._owner = {task: at % 3 for at, task in enumerate(TASKS)}
        self._newest_ms: int | None = None
        self._batch = 0
        self.blocks = 0
        self.seen: dict[Any, Any] = {}

    def take(self, rows: Sequence[Row]) -> None:
        """Let every node take a batch; what is late by the log is left out by each alike."""
        records = records_of(rows, self._newest_ms) if rows else None
        newest = {} if records is None else records.newest()
        self._batch += 1
        for at, store in enumerate(self._stores):
            mine = tasks_of([task for task, node in self._owner.items() if node == at])
            self._keep(
                advance_state(
                    store, mine, records, newest, self._batch, merged_elsewhere=self._apart
                )
            )
        self._newest_ms = max([self._newest_ms or 0, *newest.values()])

    def _keep(self, changed: BatchChanges) -> None:
        assert changed.faults == {}
        self.blocks += len(changed.blocks)
        for name, form, table in changed_rows(changed):
            for row in table.to_pylist():
                place = (name, *(row[column] for column in form.identity))
                self.seen[place] = (self._batch, [row[column] for column, _ in form.merges])

    def move(self, task: tuple[int, int], target: int) -> None:
        """Hand a task with its state to another node."""
        carried = export_state(self._stores[self._owner[task]], [task], {})
        self._owner[task] = target
        import_state(self._stores[target], tasks_of([task]), carried, {})


row = st.tuples(
    st.integers(1, 2),
    st.integers(0, 1_500),
    st.integers(1, 5),
    st.sampled_from(["a", "b", None]),
    st.one_of(st.none(), st.integers(-50, 50)),
)
move = st.tuples(st.sampled_from(TASKS), st.integers(0, 2))
step = st.tuples(st.lists(row, max_size=8), st.lists(move, max_size=2), st.integers(0, 4))


@settings(max_examples=50, deadline=None)
@given(st.lists(step, min_size=1, max_size=7))
def test_blocks_are_what_the_state_would_give(
    steps: Sequence[tuple[Sequence[Row], Sequence[tuple[tuple[int, int], int]], int]],
) -> None:
    """Whatever the batches, gaps of event time, late records and moves of tasks with state."""
    at_once, by_state = Nodes(), Nodes(merged_elsewhere=QUERIES)
    base_ms = 0
    for rows, moves, gap_s in steps:
        later = [(stream, base_ms + ms, *rest) for stream, ms, *rest in rows]
        for nodes in (at_once, by_state):
            nodes.take(later)  # type: ignore[arg-type]
            for task, target in moves:
                nodes.move(task, target)
        base_ms += gap_s * 500
    assert by_state.blocks == 0
    assert at_once.seen == by_state.seen


def test_equal_queries_share_one_block_and_the_state_stays_empty() -> None:
    """A batch over an hour: all windows but the last ones pass by the state."""
    rows: list[Row] = [(1 + at % 2, 2_000 + at * 500, at % 5, "a", at) for at in range(7_200)]
    tasks = tasks_of([(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)])
    store = MemoryStore()
    records = records_of(rows, 0)
    found = advance_state(store, tasks, records, records.newest(), 1)
    (block,) = found.blocks
    assert block.recipients == [(1, 1), (2, 1)]
    ((_, _, table),) = block.tables
    assert sum(table["s0"].to_pylist()) + 2 * 3 >= len(rows) - 2
    open_rows = {row["pane"] for _, _, part in found.windows for row in part.to_pylist()}
    newest = max(ms for _, ms, *_ in rows)
    assert min(open_rows) + 1_000 > newest - 500 - 1_000
    # Of each query the records of both ways are counted.
    counted = np.concatenate(found.tasks)
    for query in (1, 2):
        assert counted[counted[:, 0] == query, 2].sum() == len(rows)


def test_what_may_get_more_records_is_no_block() -> None:
    """Its end is not passed by the lateness, or it began before the batch."""
    store, tasks = MemoryStore(), tasks_of([(3, 0)])
    first = records_of([(2, 100, 1, "a", 1)], None)
    assert advance_state(store, tasks, first, {2: 100}, 1).blocks == []
    second = records_of([(2, 900, 1, "a", 1), (2, 1_100, 1, "a", 1), (2, 2_600, 1, "a", 1)], 100)
    found = advance_state(store, tasks, second, {2: 2_600}, 2)
    ((_, _, rows),) = found.blocks[0].tables
    assert rows["pane"].to_pylist() == [1_000]
    ((_, _, rest),) = found.windows
    assert dict(zip(rest["pane"].to_pylist(), rest["s0"].to_pylist(), strict=True)) == {
        0: 2, 2_000: 1,
    }  # fmt: skip


def test_a_node_without_the_windows_of_a_split_query_gives_out_no_block() -> None:
    """It has the records for another query; a block of no windows has no extent."""
    records = records_of([(1, 2_000, 1, "a", 1), (1, 9_000, 1, "a", 1)], 0)
    starts = []
    for task in range(3):
        found = advance_state(MemoryStore(), tasks_of([(1, task)]), records, {1: 9_000}, 1)
        assert all(len(rows) for block in found.blocks for _, _, rows in block.tables)
        starts += [
            rows["pane"].to_pylist() for block in found.blocks for _, _, rows in block.tables
        ]
    assert starts == [[2_000]]
