"""One node: what its tasks make of a batch, and how their state goes on.

Pure: state is read from and written to a `Store`, so the same code runs in Spark's state store and
in a dictionary.
"""

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.aggregates.state_schema import Form, is_pairs, named, to_bytes
from controlplane.wire.query import Window
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.assignment.subscriptions import Drops
from workers.pipeline.engine.assignment.tasks import Member, Tasks
from workers.pipeline.engine.changes import Changed
from workers.pipeline.engine.complete_windows import Passing
from workers.pipeline.engine.evaluation.drop_rules import is_window_dropped
from workers.pipeline.engine.evaluation.records import Records
from workers.pipeline.engine.evaluation.samples import sample_of_query
from workers.pipeline.engine.evaluation.user_aggregates import WorkOf
from workers.pipeline.engine.failures.fault import Fault
from workers.pipeline.engine.failures.isolation import JOIN, MERGE, SAVE, WINDOW, enter, isolated
from workers.pipeline.engine.joins import joined
from workers.pipeline.engine.partial_aggregation import added_by, bytes_of_tasks
from workers.pipeline.engine.storage.idle_streams import Appended, Clock
from workers.pipeline.engine.storage.pages import PAGES, SIZES, Pages, page_of
from workers.pipeline.engine.storage.republish import reopened, republished
from workers.pipeline.engine.storage.watermarks import marks_of, raised
from workers.pipeline.engine.storage.window_state import Merged, is_closed, merged, windows_of
from workers.pipeline.engine.store import Store


def advanced(
    store: Store,
    tasks: Tasks,
    records: Records | Sequence[Records] | None,
    newest: Mapping[int, int],
    batch: int,
    takers: Tasks | None = None,
    *,
    closes: bool = True,
    republish: bool = False,
    appended: Appended | None = None,
    apart: Collection[int] = (),
) -> Changed:
    """Take a batch's records into the state of a node's tasks.

    `records`: those of the same columns together. `newest`: the newest event time of each stream in
    this batch. One page per form is visited in turn besides those that change, so that closed
    windows and ended queries leave. `takers`: the tasks that take these records, where not all do.
    `closes`: whether windows may be closed, which older records that are still to come forbid.
    `republish`: all windows that were open before this batch count as changed, as what was written
    of them is lost. `appended`: what the batch says of the log, by which streams are idle. `apart`:
    queries whose windows a merge node puts together.
    """
    found = Changed()
    before = marks_of(store)
    again = before if republish else None
    marks = raised(store, newest)
    # Who takes records that have waited may have changed since: their windows go through the state.
    passes = closes and (takers is None or takers is tasks)
    passing = Passing(before, marks, frozenset(apart)) if passes else None
    added = added_by(takers or tasks, records, found, passing)
    started = time.thread_time_ns()
    clock = Clock.read(store, appended)
    closed = dict(clock.closed)
    _take_late(added, tasks, closed, found)
    if closes:
        clock.close(tasks.joins, marks)
    joins = clock.closed if closes else {}
    turn = _Turn(marks if closes else {}, joins, batch, again, closed)
    sizes: dict[str, int] = json.loads(store.get(SIZES) or b"{}")
    old_sizes = dict(sizes)
    known = {key.rpartition("/")[0] for key in sizes}
    for name in sorted({*added, *known}):
        form = named(name)
        pages = Pages(store, form, name, sizes)
        rows = pa.concat_tables([form.schema.empty_table(), *added.get(name, [])])
        _advance_form(pages, tasks, rows, turn, found)
    clock.keep(store, tasks.joins)
    if sizes != old_sizes:
        store.put(SIZES, json.dumps(sizes).encode())
    found.state_bytes = sum(sizes.values())
    found.state_us = (time.thread_time_ns() - started) // 1000
    return found


@dataclass(frozen=True)
class _Turn:
    """One batch, as every form of rows meets it.

    `joins`: by join up to where its windows are closed, `closed`: up to where they were before.
    `again`: by stream the newest event time before a batch that republishes, None in all others.
    """

    marks: Mapping[int, int]
    joins: Mapping[int, int]
    batch: int
    again: Mapping[int, int] | None
    closed: Mapping[int, int]


def _take_late(
    added: dict[str, list[Any]], tasks: Tasks, closed: Mapping[int, int], found: Changed
) -> None:
    """Take out what comes for windows of joins that are closed: a stream was idle and returned."""
    for name in filter(is_pairs, list(added)):
        kept = []
        for rows in added[name]:
            late = is_closed(rows, tasks.closing, closed)
            found.late += int(np.asarray(rows["s0"])[late].sum())
            kept.append(rows.filter(pa.array(~late)) if late.any() else rows)
        added[name] = kept


def _advance_form(pages: Pages, tasks: Tasks, added: Any, turn: _Turn, found: Changed) -> None:
    """Merge what a batch adds into one form's pages: all at once, one by one if memory is short."""
    touched = page_of(np.asarray(added["query"]), np.asarray(added["task"]))
    visited = sorted({*np.unique(touched).tolist(), turn.batch % PAGES})
    if turn.again is not None:
        visited = list(range(PAGES))
    try:
        passes = (MemoryError,) if len(visited) > 1 else ()
        _advance_pages(pages, visited, tasks, added, turn, found, passes)
        return
    except MemoryError:
        if len(visited) == 1:
            raise
    for page in visited:
        mine = added.filter(pa.array(touched == page))
        _advance_pages(pages, [page], tasks, mine, turn, found)


def _advance_pages(
    pages: Pages,
    visited: Sequence[int],
    tasks: Tasks,
    added: Any,
    turn: _Turn,
    found: Changed,
    passes: tuple[type[Exception], ...] = (),
) -> None:
    state = pages.load(visited)
    live = is_live(state, tasks.members)
    ended = set(np.unique(np.asarray(state["query"])[~live]).tolist()) - set(tasks.members)
    state, faults = state.filter(pa.array(live)), dict(found.faults)
    queries = list(tasks.members)
    parts = isolated(
        MERGE, queries, lambda some: _advanced(pages, tasks, turn, _of(some, state),
        _of(some, added)), faults, lambda query: sample_of_query(query, added, state), passes,
    )  # fmt: skip
    saved = _saved(pages, visited, [part.rows for part in parts], faults, passes)
    found.faults |= faults
    found.ended |= ended
    found.windows += [window for part in parts for window in part.windows]
    found.tasks.append(bytes_of_tasks(saved, pages.size_of(visited)))


class _Advanced(NamedTuple):
    """The rows of some queries that stay open, and their windows that changed."""

    rows: Any
    windows: list[tuple[str, Form, Any]]


def _advanced(pages: Pages, tasks: Tasks, turn: _Turn, state: Any, added: Any) -> _Advanced:
    """Return what rows of state and what comes to them make together. Raises what they raise."""
    result, windows = _merged_form(pages, tasks, turn, state, added)
    marks = turn.joins if is_pairs(pages.name) else turn.marks
    closing = tasks.closing
    open_ = ~is_closed(result.rows, closing, marks)
    return _Advanced(result.rows if open_.all() else result.rows.filter(pa.array(open_)), windows)


def _saved(
    pages: Pages,
    visited: Sequence[int],
    parts: Sequence[Any],
    faults: dict[int, Fault],
    passes: tuple[type[Exception], ...],
) -> Any:
    """Write the rows and return them; without those of queries whose rows cannot be written."""
    rows = pa.concat_tables([pages.form.schema.empty_table(), *parts])
    try:
        pages.save(rows, visited)
        return rows
    except passes:
        raise
    except Exception:  # noqa: BLE001 - found below, by query
        queries = np.unique(np.asarray(rows["query"])).tolist()
    isolated(SAVE, queries, lambda some: to_bytes(_of(some, rows)), faults,
             lambda query: sample_of_query(query, rows))  # fmt: skip
    rows = _of([query for query in queries if query not in faults], rows)
    pages.save(rows, visited)
    return rows


def _of(queries: Collection[int], rows: Any) -> Any:
    """Return the rows of these queries."""
    mine = np.isin(np.asarray(rows["query"]), list(queries))
    return rows if mine.all() else rows.filter(pa.array(mine))


def _merged_form(
    pages: Pages, tasks: Tasks, turn: _Turn, state: Any, added: Any
) -> tuple[Merged, list[tuple[str, Form, Any]]]:
    """Return the state with what came, and the windows that changed. Raises what they raise."""
    work = tasks.work if "state" in pages.form.schema.names else None
    result = merged(pages.form, state, added, work)
    queries = np.unique(np.asarray(result.rows["query"])).tolist()
    shown, marks = result, None
    if turn.again is not None:
        marks = turn.closed if is_pairs(pages.name) else turn.again
        shown = reopened(result, tasks.closing, marks)
    if is_pairs(pages.name):
        enter(JOIN, queries)
        return result, [(name, named(name), rows) for name, rows in _joined(tasks, shown)]
    enter(WINDOW)
    rows_of = list(_windows(pages.form, tasks, shown, work))
    if marks is not None:
        changed = _windows(pages.form, tasks, result, work)
        rows_of = republished(rows_of, changed, tasks.closing, marks)
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
