"""One node: what its tasks make of a batch, and how their state goes on.

Pure: state is read from and written to a `Store`, so the same code runs in Spark's state store and
in a dictionary.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.forms import (
    Form,
    is_pairs,
    named,
)
from controlplane.wire.query import Window
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.changed import Changed
from workers.pipeline.engine.faults import QueryFault
from workers.pipeline.engine.joins import joined, slowest
from workers.pipeline.engine.pages import PAGES, SIZES, Pages, Store, page_of
from workers.pipeline.engine.records import Records
from workers.pipeline.engine.shedding import is_window_dropped
from workers.pipeline.engine.state import Merged, is_closed, merged, windows_of
from workers.pipeline.engine.subscriptions import Drops
from workers.pipeline.engine.taking import added_by, bytes_of_tasks
from workers.pipeline.engine.tasks import Member, Tasks
from workers.pipeline.engine.users import WorkOf

MARKS: Final = "marks"


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
    added = added_by(takers or tasks, records, found)
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


def _advance_form(pages: Pages, tasks: Tasks, added: Any, turn: _Turn, found: Changed) -> None:
    touched = page_of(np.asarray(added["query"]), np.asarray(added["task"]))
    visited = sorted({*np.unique(touched).tolist(), turn.batch % PAGES})
    state = pages.load(visited)
    live = is_live(state, tasks.members)
    found.ended |= set(np.unique(np.asarray(state["query"])[~live]).tolist()) - set(tasks.members)
    state, kept = state.filter(pa.array(live)), tasks.without(found.faults)
    while True:
        try:
            result, windows = _merged_form(pages, kept, _of(kept, state), _of(kept, added))
            break
        except QueryFault as fault:
            # It names one: users' aggregates and joins are merged query by query.
            found.faults |= {query: str(fault) for query in fault.queries}
            kept = kept.without(fault.queries)
    found.windows += windows
    marks = dict(turn.marks)
    if is_pairs(pages.name):
        marks = {query: slowest(turn.marks, one.subscription.streams)
                 for query, one in kept.members.items() if one.joins}  # fmt: skip
    closing = {query: member.closing for query, member in kept.members.items()}
    open_ = ~is_closed(result.rows, closing, marks)
    rows = result.rows if open_.all() else result.rows.filter(pa.array(open_))
    pages.save(rows, visited)
    found.tasks.append(bytes_of_tasks(rows, pages.size_of(visited)))


def _of(tasks: Tasks, rows: Any) -> Any:
    """Return the rows of queries that the node computes, which are all but in a fault."""
    mine = np.isin(np.asarray(rows["query"]), list(tasks.members))
    return rows if mine.all() else rows.filter(pa.array(mine))


def _merged_form(pages: Pages, tasks: Tasks, state: Any, added: Any) -> tuple[Merged, list[Any]]:
    """Return the state with what came, and the windows that changed. Raises `QueryFault`."""
    work = tasks.work if "state" in pages.form.schema.names else None
    result = merged(pages.form, state, added, work)
    if is_pairs(pages.name):
        return result, [(name, named(name), rows) for name, rows in _joined(tasks, result)]
    rows_of = _windows(pages.form, tasks, result, work)
    return result, [(pages.name, pages.form, rows) for rows in rows_of]


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
