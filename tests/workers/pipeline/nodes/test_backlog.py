"""The queue of a slow node: every record once, in order, for the tasks that it came for."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.schemas import REPORTS
from workers.pipeline.engine.assignment.subscriptions import TaskOwnership
from workers.pipeline.engine.assignment.tasks import Task
from workers.pipeline.engine.evaluation.records import task_column
from workers.pipeline.engine.store import MemoryStore
from workers.pipeline.exchange.envelope import Envelope, newest_of
from workers.pipeline.nodes.backlog import (
    MOST_AGES,
    ArrivingTask,
    NodeBacklog,
    WorkItem,
    records_exported,
)


def envelope(*runs: tuple[int, int], first: int = 0) -> Envelope:
    """Return records of (stream, how many), numbered from `first` by their car."""
    count = sum(records for _, records in runs)
    rows = [{"ts": 0, "car": first + at, "x": 0, "y": 0, "speed": 1} for at in range(count)]
    return Envelope(
        streams=[stream for stream, _ in runs],
        appended_ms=[100 + at for at in range(len(runs))],
        lengths=[records for _, records in runs],
        newest_ms=[1_000 * (at + 1) for at in range(len(runs))],
        marks_ms=[None] * len(runs),
        records=pa.RecordBatch.from_pylist(rows, REPORTS.arrow),
        extras={"luck": np.arange(count, dtype=np.uint64)},
    )


def cars(works: list[WorkItem]) -> list[int]:
    found: list[int] = []
    for one in (envelope for work in works for envelope in work.envelopes):
        found += np.asarray(one.records["car"]).tolist() if one.records.num_rows else []
    return found


def move(source: NodeBacklog, target: NodeBacklog, task: Task, owner: Task) -> None:
    """Move the backlog of a task that reads stream 1 to another node, where `owner` gets it."""
    target.prepend([ArrivingTask(owner, source.export({task: (1,)})[task], 0)])


OWNED = {7: TaskOwnership(0, [0])}


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=5),
    budgets=st.lists(st.integers(0, 7), min_size=1, max_size=30),
)
def test_every_record_is_taken_once_and_in_order(
    sizes: list[list[int]], budgets: list[int]
) -> None:
    """Through the store, batch by batch, never more than the budget."""
    store, came = MemoryStore(), 0
    taken: list[int] = []
    marks: dict[int, int] = {}
    for at, budget in enumerate(budgets):
        waiting = NodeBacklog(store)
        if at < len(sizes):
            runs = [(stream, records) for stream, records in enumerate(sizes[at])]
            waiting.append([envelope(*runs, first=came)], OWNED)
            came += sum(sizes[at])
        works = waiting.take(budget)
        found = cars(works)
        assert len(found) == min(budget, came - len(taken))
        taken += found
        marks |= newest_of([one for work in works for one in work.envelopes])
        assert waiting.records == came - len(taken)
        waiting.save()
    rest = NodeBacklog(store)
    taken += cars(works := rest.take(None))
    marks |= newest_of([one for work in works for one in work.envelopes])
    assert taken == list(range(came))
    assert not rest
    rest.save()
    assert [name for name in store if name.startswith("waiting/")] == []
    assert set(marks) == set(range(max(map(len, sizes[: len(budgets)]))))


def test_event_times_are_known_when_the_last_record_of_a_block_is_taken() -> None:
    """Not before: windows would close in front of records that wait."""
    waiting = NodeBacklog(MemoryStore())
    waiting.append([envelope((1, 3), (2, 0), (3, 2))], OWNED)
    seen = [newest_of([e for w in waiting.take(n) for e in w.envelopes]) for n in (2, 1, 1, 1)]
    assert seen == [{}, {1: 1_000, 2: 2_000}, {}, {3: 3_000}]


def test_records_wait_at_least_since_the_newest_of_their_envelope() -> None:
    """Through the store; a long queue has few pairs, each with the newest time of its part."""
    store = MemoryStore()
    waiting = NodeBacklog(store)
    waiting.append([envelope((1, 4), (2, 3))], OWNED)
    waiting.take(2)
    waiting.save()
    assert NodeBacklog(store).waiting_since() == [[101, 5]]
    longer = NodeBacklog(MemoryStore())
    for place in range(3 * MOST_AGES):
        longer.append([replace(envelope((1, 2)), appended_ms=[100 + place])], OWNED)
    pairs = longer.waiting_since()
    assert len(pairs) == MOST_AGES
    assert pairs[0] == [102, 6]
    assert sum(records for _, records in pairs) == longer.records


def test_what_waits_for_a_task_leaves_with_it() -> None:
    """Records of its streams that came while the node had it; at the new node they go first."""
    here, there = NodeBacklog(MemoryStore()), NodeBacklog(MemoryStore())
    here.append([envelope((1, 4), (2, 3))], {7: TaskOwnership(0, [0, 1]), 8: TaskOwnership(0, [0])})
    here.append([envelope((1, 2), first=7)], {8: TaskOwnership(0, [0])})
    here.take(2)
    exported = here.export({(7, 1): (1,)})[7, 1]
    assert [Envelope.decode(data).records["car"].to_pylist() for data in exported.values()] == [
        [2, 3]
    ]
    assert here.records == 7, "others may need them here"
    there.append([envelope((1, 1), first=50)], {9: TaskOwnership(0, [0])})
    there.prepend([ArrivingTask((7, 1), exported, 0)])
    first, second = there.take(None)
    assert (cars([first]), first.tasks) == ([2, 3], {7: TaskOwnership(0, [1])})
    assert (cars([second]), second.tasks) == ([50], {9: TaskOwnership(0, [0])})


def test_records_that_several_tasks_take_along_are_once_in_their_new_queue() -> None:
    """Each with its own tasks; a query that has failed there does not keep them from the others."""
    here, there = NodeBacklog(MemoryStore()), NodeBacklog(MemoryStore())
    column = np.array([0, 1, 1, 0, 1, 1, 0], np.uint64)
    told = replace(envelope((1, 4), (2, 3)), extras={task_column(5): column})
    owned = {
        6: TaskOwnership(0, [0]), 7: TaskOwnership(0, [0, 1], task_column(5)),
        8: TaskOwnership(0, [0]), 9: TaskOwnership(0, [0]),
    }  # fmt: skip
    here.append([told, envelope((1, 1), (3, 1), first=7)], owned)
    leaving = {(6, 0): (1,), (7, 0): (1, 2), (7, 1): (1, 2), (8, 0): (1,)}
    exported = here.export(leaving)
    counts = {task: records_exported(forms) for task, forms in exported.items()}
    assert counts == {(6, 0): 5, (7, 0): 8, (7, 1): 8, (8, 0): 5}
    assert [len(data) > 0 for forms in exported.values() for data in forms.values()] == [
        True, True, False, False, False, False, False, False,
    ]  # fmt: skip
    failed = 6
    there.prepend(
        ArrivingTask(task, exported[task], None if task[0] == failed else 4)
        for task in reversed(leaving)
    )
    assert there.records == 8
    own = TaskOwnership(4, [0, 1], task_column(7)), TaskOwnership(4, [0, 1])
    works = there.take(None)
    assert [cars([work]) for work in works] == [[*range(7)], [7]]
    assert [work.tasks for work in works] == [{7: held, 8: TaskOwnership(4, [0])} for held in own]
    assert works[0].envelopes[0].extras[task_column(7)].tolist() == column.tolist()
    assert [work.tasks for work in here.take(None)] == [{9: TaskOwnership(0, [0])}]


def test_what_is_forwarded_says_by_itself_what_tells_its_tasks() -> None:
    here, there = NodeBacklog(MemoryStore()), NodeBacklog(MemoryStore())
    tells = {task_column(7): np.array([0, 1], np.uint64)}
    chosen = replace(envelope((1, 2)), extras=tells)
    here.append([chosen, envelope((1, 1), first=2)], {7: TaskOwnership(0, [0, 1], task_column(7))})
    move(here, there, (7, 1), (7, 1))
    tasks = [work.tasks for work in there.take(None)]
    assert tasks == [{7: TaskOwnership(0, [1], task_column(7))}, {7: TaskOwnership(0, [1])}]


def test_a_task_that_returns_gets_its_backlog_once() -> None:
    store = MemoryStore()
    here, there = NodeBacklog(store), NodeBacklog(MemoryStore())
    here.append([envelope((1, 3))], {7: TaskOwnership(0, [0, 1])})
    move(here, there, (7, 1), (7, 1))
    here.save()
    here = NodeBacklog(store)
    move(there, here, (7, 1), (7, 1))
    assert [work.tasks[7].tasks for work in here.take(None) if work.tasks] == [[1], [0]]
    assert not there, "no task of that node needs the records"


def test_a_remaining_task_has_the_backlog_of_removed_ones() -> None:
    """As they were routed: of 6 tasks, 5 and 1; from there on, the backlog moves with the task."""
    here, there, third = (NodeBacklog(MemoryStore()) for _ in range(3))
    here.append([envelope((1, 6))], {7: TaskOwnership(0, [1, 5], "", 6)})
    there.append([envelope((1, 2), first=10)], {7: TaskOwnership(0, [1], "", 6)})
    move(here, there, (7, 5), (7, 1))
    move(there, third, (7, 1), (7, 1))
    works = third.take(None)
    assert [cars([work]) for work in works] == [[0, 1, 2, 3, 4, 5], [10, 11]]
    assert [work.tasks for work in works] == [
        {7: TaskOwnership(0, [1], "", 6, [5])}, {7: TaskOwnership(0, [1], "", 6)},
    ]  # fmt: skip
    assert [work.tasks for work in here.take(None)] == [{7: TaskOwnership(0, [1], "", 6)}]


@pytest.mark.parametrize("elapsed", [[1_000], [100] * 10, [333, 333, 334]])
def test_fractions_of_a_budget_add_up(elapsed: list[int]) -> None:
    waiting = NodeBacklog(MemoryStore())
    assert sum(waiting.budget(25, ms) for ms in elapsed) in (24, 25)
