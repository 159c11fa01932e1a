"""One node: what its tasks make of a batch, and how their state continues.

Pure: state is read from and written to a `Store`, so the same code runs in Spark's state store and
in a dictionary.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.aggregates.state_schema import StateSchema, is_pairs, schema_named, to_bytes
from controlplane.wire.query import Window
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.assignment.subscriptions import DropRules
from workers.pipeline.engine.assignment.tasks import Member, Tasks
from workers.pipeline.engine.complete_windows import CompleteWindows
from workers.pipeline.engine.evaluation.drop_rules import is_window_dropped
from workers.pipeline.engine.evaluation.records import Records, sample_of_query
from workers.pipeline.engine.evaluation.user_aggregates import UserAggregates
from workers.pipeline.engine.failures.fault import FaultReason
from workers.pipeline.engine.failures.isolation import (
    JOIN,
    MERGE,
    SAVE,
    WINDOW,
    enter_stage,
    run_isolated,
)
from workers.pipeline.engine.joins import join_windows
from workers.pipeline.engine.partial_aggregation import BatchChanges, partial_aggregates, task_bytes
from workers.pipeline.engine.storage.idle_streams import LogTimes, StreamClock
from workers.pipeline.engine.storage.pages import PAGES, SIZES, Pages, page_of, rows_of
from workers.pipeline.engine.storage.watermarks import advance_watermarks, read_watermarks
from workers.pipeline.engine.storage.window_state import (
    MergedState,
    changed_windows,
    is_closed,
    mark_open_changed,
    merge_state,
    windows_to_republish,
)
from workers.pipeline.engine.store import Store, read_json, write_json


def advance_state(
    store: Store,
    tasks: Tasks,
    records: Records | Sequence[Records] | None,
    newest: Mapping[int, int],
    batch: int,
    record_tasks: Tasks | None = None,
    *,
    closes: bool = True,
    republish: bool = False,
    log_times: LogTimes | None = None,
    merged_elsewhere: Collection[int] = (),
) -> BatchChanges:
    """Update the state of a node's tasks with the records of a batch, and return the changes.

    `records`: one `Records` per set of columns. `newest`: the newest event time of each stream.
    `record_tasks`: the tasks that the records are for, None for all. `closes`: False if older
    records are still to come. `republish`: emit all windows that were open before this batch.
    `merged_elsewhere`: queries whose windows an aggregator node merges.
    """
    result = BatchChanges()
    before = read_watermarks(store)
    watermarks = advance_watermarks(store, newest)
    # Records from a backlog may be for other tasks: their windows pass through the state.
    emits_complete = closes and (record_tasks is None or record_tasks is tasks)
    complete = CompleteWindows(before, watermarks, frozenset(merged_elsewhere))
    emitted = complete if emits_complete else None
    added = partial_aggregates(record_tasks or tasks, records, result, emitted)
    started = time.thread_time_ns()
    clock = StreamClock.read(store, log_times)
    closed = dict(clock.closed_until)
    _remove_late_rows(added, tasks, closed, result)
    if closes:
        clock.close(tasks.joins, watermarks)
    closing = (watermarks, clock.closed_until) if closes else ({}, {})
    context = _BatchContext(*closing, batch, before if republish else None, closed)
    _advance_schemas(store, tasks, added, context, result)
    clock.save(store, tasks.joins)
    result.state_us = (time.thread_time_ns() - started) // 1000
    return result


def _advance_schemas(
    store: Store,
    tasks: Tasks,
    added: Mapping[str, Sequence[Any]],
    context: "_BatchContext",
    changes: BatchChanges,
) -> None:
    """Merge the added rows into the pages of each state schema, and sum up the bytes of all pages.

    Pages of every schema are visited in turn, so that closed windows and ended queries are deleted.
    """
    sizes: dict[str, int] = read_json(store, SIZES)
    known = {key.rpartition("/")[0] for key in sizes}
    for name in sorted({*added, *known}):
        schema = schema_named(name)
        pages = Pages(store, schema, name, sizes)
        rows = pa.concat_tables([schema.arrow.empty_table(), *added.get(name, [])])
        _advance_schema(pages, tasks, rows, context, changes)
    write_json(store, SIZES, sizes)
    changes.state_bytes = sum(sizes.values())


@dataclass(frozen=True)
class _BatchContext:
    """One batch, as every state schema of rows meets it.

    `joins`: by join up to where its windows are closed, `closed_until`: up to where they were
    before. `reopen_from`: by stream the newest event time before a batch that republishes,
    None in all others.
    """

    watermarks: Mapping[int, int]
    joins: Mapping[int, int]
    batch: int
    reopen_from: Mapping[int, int] | None
    closed_until: Mapping[int, int]


def _remove_late_rows(
    added: dict[str, list[Any]], tasks: Tasks, closed: Mapping[int, int], changes: BatchChanges
) -> None:
    """Remove rows for closed windows of joins: records of a stream that was idle."""
    for name in filter(is_pairs, list(added)):
        kept = []
        for rows in added[name]:
            late = is_closed(rows, tasks.closing, closed)
            columns = (np.asarray(rows[name])[late].tolist() for name in ("query", "s0"))
            for query, records in zip(*columns, strict=True):
                changes.late += records
                changes.late_by_query[query] += records
            kept.append(rows.filter(pa.array(~late)) if late.any() else rows)
        added[name] = kept


def _advance_schema(
    pages: Pages, tasks: Tasks, added: Any, context: _BatchContext, changes: BatchChanges
) -> None:
    """Merge added rows into the pages of a schema; page by page if memory is short."""
    touched = page_of(np.asarray(added["query"]), np.asarray(added["task"]))
    visited = sorted({*np.unique(touched).tolist(), context.batch % PAGES})
    if context.reopen_from is not None:
        visited = list(range(PAGES))
    try:
        reraise = (MemoryError,) if len(visited) > 1 else ()
        _advance_pages(pages, visited, tasks, added, context, changes, reraise)
        return
    except MemoryError:
        if len(visited) == 1:
            raise
    for page in visited:
        selected = added.filter(pa.array(touched == page))
        _advance_pages(pages, [page], tasks, selected, context, changes)


def _advance_pages(
    pages: Pages,
    visited: Sequence[int],
    tasks: Tasks,
    added: Any,
    context: _BatchContext,
    changes: BatchChanges,
    reraise: tuple[type[Exception], ...] = (),
) -> None:
    state = pages.load(visited)
    live = is_live(state, tasks.members)
    ended = set(np.unique(np.asarray(state["query"])[~live]).tolist()) - set(tasks.members)
    state, faults = state.filter(pa.array(live)), dict(changes.faults)
    queries = list(tasks.members)
    parts = run_isolated(
        MERGE, queries, lambda some: _advance_queries(pages, tasks, context, rows_of(some, state),
        rows_of(some, added)), faults, lambda query: sample_of_query(query, added, state), reraise,
    )  # fmt: skip
    saved = _save_rows(pages, visited, [part.rows for part in parts], faults, reraise)
    changes.faults |= faults
    changes.ended |= ended
    changes.windows += [window for part in parts for window in part.windows]
    changes.tasks.append(task_bytes(saved, pages.size_of(visited)))


class _Advanced(NamedTuple):
    """The rows of some queries that stay open, and their windows that changed."""

    rows: Any
    windows: list[tuple[str, StateSchema, Any]]


def _advance_queries(
    pages: Pages, tasks: Tasks, context: _BatchContext, state: Any, added: Any
) -> _Advanced:
    """Return the merge of state and added rows. Raises the errors of the queries."""
    result, windows = _merged_form(pages, tasks, context, state, added)
    watermarks = context.joins if is_pairs(pages.name) else context.watermarks
    closing = tasks.closing
    open_ = ~is_closed(result.rows, closing, watermarks)
    return _Advanced(result.rows if open_.all() else result.rows.filter(pa.array(open_)), windows)


def _save_rows(
    pages: Pages,
    visited: Sequence[int],
    parts: Sequence[Any],
    faults: dict[int, FaultReason],
    reraise: tuple[type[Exception], ...],
) -> Any:
    """Write the rows and return them, without those of queries whose rows cannot be written."""
    rows = pa.concat_tables([pages.form.arrow.empty_table(), *parts])
    try:
        pages.save(rows, visited)
        return rows
    except reraise:
        raise
    except Exception:  # noqa: BLE001 - found below, by query
        queries = np.unique(np.asarray(rows["query"])).tolist()
    run_isolated(SAVE, queries, lambda some: to_bytes(rows_of(some, rows)), faults,
             lambda query: sample_of_query(query, rows))  # fmt: skip
    rows = rows_of([query for query in queries if query not in faults], rows)
    pages.save(rows, visited)
    return rows


def _merged_form(
    pages: Pages, tasks: Tasks, context: _BatchContext, state: Any, added: Any
) -> tuple[MergedState, list[tuple[str, StateSchema, Any]]]:
    """Return the merged state and the changed windows. Raises the errors of the queries."""
    work = tasks.work if "state" in pages.form.arrow.names else None
    result = merge_state(pages.form, state, added, work)
    queries = np.unique(np.asarray(result.rows["query"])).tolist()
    shown, watermarks = result, None
    if context.reopen_from is not None:
        watermarks = context.closed_until if is_pairs(pages.name) else context.reopen_from
        shown = mark_open_changed(result, tasks.closing, watermarks)
    if is_pairs(pages.name):
        enter_stage(JOIN, queries)
        return result, [
            (name, schema_named(name), rows) for name, rows in _join_windows(tasks, shown)
        ]
    enter_stage(WINDOW)
    rows_of = list(_windows(pages.form, tasks, shown, work))
    if watermarks is not None:
        changed = _windows(pages.form, tasks, result, work)
        rows_of = windows_to_republish(rows_of, changed, tasks.closing, watermarks)
    return result, [(pages.name, pages.form, rows) for rows in rows_of]


def is_live(rows: Any, members: Mapping[int, Member]) -> NDArray[np.bool_]:
    """Return which rows belong to a task that the node has, in the query's present incarnation."""
    identity = [np.asarray(rows[name]) for name in ("query", "run", "task")]
    if not len(rows):
        return np.zeros(0, np.bool_)
    owners, owner_of = np.unique(np.stack(identity), axis=1, return_inverse=True)
    known = [
        _has(members.get(query), incarnation, task)
        for query, incarnation, task in owners.T.tolist()
    ]
    return np.array(known, np.bool_)[owner_of.reshape(-1)]


def _has(member: Member | None, incarnation: int, task: int) -> bool:
    return (
        member is not None
        and member.subscription.incarnation == incarnation
        and task < member.subscription.tasks
        and bool(member.subscription.owned[task])
    )


def _join_windows(tasks: Tasks, merged_state: MergedState) -> Iterable[tuple[str, Any]]:
    """Yield the changed windows of joins by schema name, each aggregated as a whole."""
    changed = (
        merged_state.rows.filter(pa.array(merged_state.is_changed))
        .group_by(["query", "pane"])
        .aggregate([])
    )
    pairs = np.stack([np.asarray(changed["query"]), np.asarray(changed["pane"])], axis=1)
    query, pane = np.asarray(merged_state.rows["query"]), np.asarray(merged_state.rows["pane"])
    for item in np.unique(pairs[:, 0]).tolist():
        selected = (query == item) & np.isin(pane, pairs[pairs[:, 0] == item, 1])
        computation = tasks.members[item].computation
        assert computation is not None
        for name, rows in join_windows(
            computation, item, merged_state.rows.filter(pa.array(selected))
        ).items():
            yield name, _without_dropped(rows, {item: tasks.members[item].windows})


def _windows(
    form: StateSchema, tasks: Tasks, merged_state: MergedState, work: UserAggregates | None
) -> Iterable[Any]:
    """Yield the changed windows, queries with the same windows together."""
    query = np.asarray(merged_state.rows["query"])
    groups: dict[Window | None, list[int]] = {}
    for changed in np.unique(query[merged_state.is_changed]).tolist():
        window = tasks.members[changed].closing.window
        groups.setdefault(window if window.panes > 1 else None, []).append(changed)
    for kind, queries in groups.items():
        selected = np.isin(query, queries)
        part = MergedState(
            merged_state.rows.filter(pa.array(selected)), merged_state.is_changed[selected]
        )
        rows = changed_windows(form, part, kind or Window(1, 1), work)
        yield _without_dropped(rows, {item: tasks.members[item].windows for item in queries})


def _without_dropped(rows: Any, windows: Mapping[int, DropRules]) -> Any:
    """Return the windows that no drop rule drops; a window with dropped records has no result.

    A record that is in several windows is kept where one of them is.
    """
    dropped = np.zeros(len(rows), np.bool_)
    query, stream, start = (np.asarray(rows[name]) for name in ("query", "stream", "pane"))
    for item, drop_rules in windows.items():
        for of, rule in drop_rules:
            selected = np.flatnonzero((query == item) & (stream == of))
            dropped[selected] |= is_window_dropped(rule, start[selected])
    return rows.filter(pa.array(~dropped)) if dropped.any() else rows
