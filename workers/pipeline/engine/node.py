"""One node: what its tasks make of a batch, and how their state goes on.

Pure: state is read from and written to a `Store`, so the same code runs in Spark's state store and
in a dictionary.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.forms import (
    Form,
    is_pairs,
    named,
    names_of,
    pairs_name,
)
from controlplane.wire.layout import layout_of
from controlplane.wire.query import Window
from workers.pipeline.engine.arcs import dropped_by
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.joins import joined, sides_of, slowest
from workers.pipeline.engine.pages import PAGES, SIZES, Pages, Store, page_of
from workers.pipeline.engine.panes import Panes, panes_of
from workers.pipeline.engine.records import Int64s, Records
from workers.pipeline.engine.shedding import is_window_dropped
from workers.pipeline.engine.state import Merged, is_closed, merged, windows_of
from workers.pipeline.engine.subscriptions import Drops, Group
from workers.pipeline.engine.tasks import Member, Tasks
from workers.pipeline.engine.users import WorkOf

MARKS: Final = "marks"


@dataclass(frozen=True, slots=True)
class Operator:
    """What selecting and aggregating cost for the queries of one computation on a node.

    `query`: the first of them, `queries`: how many share it; `records` went in, `selected` were
    taken, `rows` of panes came out, in `cpu_us` of processor time.
    """

    query: int
    queries: int
    records: int
    selected: int
    rows: int
    cpu_us: int


@dataclass
class Changed:
    """What a batch changed on a node: windows by form of rows, and measures.

    `dropped`: records by split arc (stream, query); `tasks`: rows of query, task, records taken in
    and bytes of state, of the tasks that were looked at; `state_us`: processor time of the state.
    """

    windows: list[tuple[str, Form, Any]] = field(default_factory=list)
    ended: set[int] = field(default_factory=set)
    late: int = 0
    state_bytes: int = 0
    dropped: dict[tuple[int, int], int] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    tasks: list[Int64s] = field(default_factory=list)
    state_us: int = 0

    def take(self, other: "Changed") -> None:
        """Add what another part of the batch changed after this."""
        self.windows += other.windows
        self.ended |= other.ended
        self.late += other.late
        self.state_bytes = other.state_bytes
        for arc, lost in other.dropped.items():
            self.dropped[arc] = self.dropped.get(arc, 0) + lost
        self.operators += other.operators
        self.tasks += other.tasks
        self.state_us += other.state_us


def advanced(
    store: Store,
    tasks: Tasks,
    records: Records | None,
    newest: Mapping[int, int],
    batch: int,
    takers: Tasks | None = None,
    *,
    closes: bool = True,
) -> Changed:
    """Take a batch's records into the state of a node's tasks.

    `newest`: the newest event time of each stream in this batch. One page per form is visited in
    turn besides those that change, so that closed windows and ended queries leave. `takers`: the
    tasks that take these records, where not all do. `closes`: whether windows may be closed, which
    older records that are still to come forbid.
    """
    found = Changed()
    marks = _marks(store, newest)
    added = _added(takers or tasks, records, found)
    started = time.thread_time_ns()
    sizes: dict[str, int] = json.loads(store.get(SIZES) or b"{}")
    before = dict(sizes)
    known = {key.rpartition("/")[0] for key in sizes}
    for name in sorted({*added, *known}):
        form = named(name)
        pages = Pages(store, form, name, sizes)
        rows = pa.concat_tables([form.schema.empty_table(), *added.get(name, [])])
        _advance_form(pages, tasks, rows, _Turn(marks if closes else {}, batch), found)
    if sizes != before:
        store.put(SIZES, json.dumps(sizes).encode())
    found.state_bytes = sum(sizes.values())
    found.state_us = (time.thread_time_ns() - started) // 1000
    return found


@dataclass(frozen=True)
class _Turn:
    """One batch, as every form of rows meets it."""

    marks: Mapping[int, int]
    batch: int


def marks_of(store: Store) -> dict[int, int]:
    """Return the newest event time of each stream that a node has met."""
    row = json.loads(store.get(MARKS) or b"{}")
    return {int(stream): ms for stream, ms in row.items()}


def _marks(store: Store, newest: Mapping[int, int]) -> dict[int, int]:
    """Return the newest event time of each stream so far, and keep it."""
    marks = marks_of(store)
    grown = {s: ms for s, ms in newest.items() if ms > marks.get(s, ms - 1)}
    if grown:
        marks |= grown
        store.put(MARKS, json.dumps(marks).encode())
    return marks


def _added(tasks: Tasks, records: Records | None, found: Changed) -> dict[str, list[Any]]:
    """Return the rows that a batch adds, by form."""
    added: dict[str, list[Any]] = {}
    if records is None or not len(records):
        return added
    for group in tasks.groups:
        started = time.thread_time_ns()
        panes, names, keys = _taken(group, records)
        found.late += panes.late
        tables = zip(names, (panes.rows, panes.cells, panes.blobs), strict=True)
        for at, (name, rows) in enumerate(tables):
            if rows is not None and len(rows):
                owned = group.owned(rows, keys)
                if is_pairs(name):
                    owned = _under_one_mark(owned)
                added.setdefault(name, []).append(owned.select(named(name).schema.names))
                if at == 0:
                    found.tasks.append(_records_of_tasks(owned))
        if panes.gone is not None:
            found.dropped |= dropped_by(group, records, panes.gone)
        spent = (time.thread_time_ns() - started) // 1000
        found.operators.append(_operator(group, records, panes, spent))
    return added


def _taken(group: Group, records: Records) -> tuple[Panes, Sequence[str], list[str]]:
    """Return what a group takes of records, the forms of its tables, and their key columns."""
    computation = group.computation
    if computation.join is None:
        layout = layout_of(computation)
        panes = panes_of(records, computation, group.streams, group.intake)
        return panes, names_of(layout), layout.shape.key_names
    sides = sides_of(records, computation, group.streams, group.intake)
    keys = [f"k{at}" for at in range(len(computation.join.on))]
    return sides, (pairs_name(computation), "", ""), keys


def _under_one_mark(rows: Any) -> Any:
    """Return the rows of joins with the query as their stream: all its streams close a window."""
    return rows.set_column(rows.schema.get_field_index("stream"), "stream", rows["query"])


def _operator(group: Group, records: Records, panes: Panes, cpu_us: int) -> Operator:
    mine = len(records)
    if not records.streams <= group.streams:
        mine = int(np.isin(records.stream, list(group.streams)).sum())
    first = min(one.query for one in group.subscriptions)
    count = len(group.subscriptions)
    return Operator(first, count, mine, panes.selected, len(panes.rows), cpu_us)


# A query has fewer tasks than this: query and task fit into one number.
_TASKS: Final = 1 << 20


def _records_of_tasks(owned: Any) -> Int64s:
    """Return rows of query, task, records and no bytes."""
    pairs, row = _tasks_of(owned)
    records = np.bincount(row, np.asarray(owned["s0"]), len(pairs))
    return np.column_stack([pairs, records.astype(np.int64), np.zeros(len(pairs), np.int64)])


def _bytes_of_tasks(rows: Any, size: int) -> Int64s:
    """Return rows of query, task, no records and bytes: each row of state is as long as another."""
    pairs, row = _tasks_of(rows)
    share = np.rint(np.bincount(row, minlength=len(pairs)) * (size / max(1, len(rows))))
    return np.column_stack([pairs, np.zeros(len(pairs), np.int64), share.astype(np.int64)])


def _tasks_of(rows: Any) -> tuple[Int64s, Int64s]:
    """Return the tasks that occur, as pairs of query and task, and which of them each row is of."""
    both = np.asarray(rows["query"]) * _TASKS + np.asarray(rows["task"])
    found, row = np.unique(both, return_inverse=True)
    return np.column_stack([found // _TASKS, found % _TASKS]), row


def _advance_form(pages: Pages, tasks: Tasks, added: Any, turn: _Turn, found: Changed) -> None:
    touched = page_of(np.asarray(added["query"]), np.asarray(added["task"]))
    visited = sorted({*np.unique(touched).tolist(), turn.batch % PAGES})
    state = pages.load(visited)
    live = is_live(state, tasks.members)
    found.ended |= set(np.unique(np.asarray(state["query"])[~live]).tolist()) - set(tasks.members)
    work = tasks.work if "state" in pages.form.schema.names else None
    result = merged(pages.form, state.filter(pa.array(live)), added, work)
    if is_pairs(pages.name):
        marks = {query: slowest(turn.marks, one.subscription.streams)
                 for query, one in tasks.members.items() if one.joins}  # fmt: skip
        for name, rows in _joined(tasks, result):
            found.windows.append((name, named(name), rows))
    else:
        marks = dict(turn.marks)
        for rows in _windows(pages.form, tasks, result, work):
            found.windows.append((pages.name, pages.form, rows))
    closing = {query: member.closing for query, member in tasks.members.items()}
    open_ = ~is_closed(result.rows, closing, marks)
    kept = result.rows if open_.all() else result.rows.filter(pa.array(open_))
    pages.save(kept, visited)
    found.tasks.append(_bytes_of_tasks(kept, pages.size_of(visited)))


def is_live(rows: Any, members: Mapping[int, Member]) -> NDArray[np.bool_]:
    """Return which rows belong to a task that the node has, in the query's present run."""
    identity = [np.asarray(rows[name]) for name in ("query", "run", "task")]
    if not len(rows):
        return np.zeros(0, np.bool_)
    owners, owner_of = np.unique(np.stack(identity), axis=1, return_inverse=True)
    known = [_has(members.get(query), run, task) for query, run, task in owners.T.tolist()]
    return np.array(known, np.bool_)[owner_of.reshape(-1)]


def _has(member: Member | None, run: int, task: int) -> bool:
    return (
        member is not None
        and member.subscription.run == run
        and task < member.subscription.tasks
        and bool(member.subscription.mine[task])
    )


def _joined(tasks: Tasks, found: Merged) -> Iterable[tuple[str, Any]]:
    """Yield the changed windows of joins by the names of their forms, each aggregated whole."""
    changed = found.rows.filter(pa.array(found.fresh)).group_by(["query", "pane"]).aggregate([])
    pairs = np.stack([np.asarray(changed["query"]), np.asarray(changed["pane"])], axis=1)
    query, pane = np.asarray(found.rows["query"]), np.asarray(found.rows["pane"])
    for one in np.unique(pairs[:, 0]).tolist():
        mine = (query == one) & np.isin(pane, pairs[pairs[:, 0] == one, 1])
        computation = tasks.members[one].computation
        assert computation is not None
        for name, rows in joined(computation, one, found.rows.filter(pa.array(mine))).items():
            yield name, _without_dropped(rows, {one: tasks.members[one].windows})


def _windows(form: Form, tasks: Tasks, found: Merged, work: WorkOf | None) -> Iterable[Any]:
    """Yield the changed windows, queries with the same windows together."""
    query = np.asarray(found.rows["query"])
    groups: dict[Window | None, list[int]] = {}
    for changed in np.unique(query[found.fresh]).tolist():
        window = tasks.members[changed].closing.window
        groups.setdefault(window if window.panes > 1 else None, []).append(changed)
    for kind, queries in groups.items():
        mine = np.isin(query, queries)
        part = Merged(found.rows.filter(pa.array(mine)), found.fresh[mine])
        rows = windows_of(form, part, kind or Window(1, 1), work)
        yield _without_dropped(rows, {one: tasks.members[one].windows for one in queries})


def _without_dropped(rows: Any, windows: Mapping[int, Drops]) -> Any:
    """Return the windows that no arc drops: a window of which a record was dropped has no result.

    A record that is in several windows is kept where one of them is.
    """
    dropped = np.zeros(len(rows), np.bool_)
    query, stream, start = (np.asarray(rows[name]) for name in ("query", "stream", "pane"))
    for one, drops in windows.items():
        for of, shed in drops:
            mine = np.flatnonzero((query == one) & (stream == of))
            dropped[mine] |= is_window_dropped(shed, start[mine])
    return rows.filter(pa.array(~dropped)) if dropped.any() else rows
