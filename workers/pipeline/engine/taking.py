"""What the queries of a node take of a batch's records: rows of panes for their tasks."""

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from controlplane.wire.forms import is_pairs, named, names_of, pairs_name
from controlplane.wire.layout import layout_of
from workers.pipeline.engine.arcs import dropped_by, late_of
from workers.pipeline.engine.changed import Changed, Operator
from workers.pipeline.engine.faults import QueryFault
from workers.pipeline.engine.joins import sides_of
from workers.pipeline.engine.panes import Panes, panes_of
from workers.pipeline.engine.records import Int64s, Records
from workers.pipeline.engine.subscriptions import Group
from workers.pipeline.engine.tasks import Tasks

# A query has fewer tasks than this: query and task fit into one number.
_TASKS: Final = 1 << 20


def added_by(tasks: Tasks, records: Records | None, found: Changed) -> dict[str, list[Any]]:
    """Return the rows that a batch adds, by form."""
    added: dict[str, list[Any]] = {}
    if records is None or not len(records):
        return added
    for group in tasks.groups:
        started = time.thread_time_ns()
        try:
            taken = _taken(group, records)
        except QueryFault as fault:
            found.faults |= {one.query: str(fault) for one in group.subscriptions}
            continue
        for name, rows in _owned(group, taken, found):
            added.setdefault(name, []).append(rows)
        _count(group, records, taken.panes, found)
        spent = (time.thread_time_ns() - started) // 1000
        found.operators.append(_operator(group, records, taken.panes, spent))
    return added


class _Taken(NamedTuple):
    """What a group takes of records, the forms of its tables, and their key columns."""

    panes: Panes
    forms: Sequence[str]
    keys: Sequence[str]


def _owned(group: Group, taken: _Taken, found: Changed) -> Iterator[tuple[str, Any]]:
    """Yield the rows of the group's tasks by form."""
    panes = taken.panes
    tables = zip(taken.forms, (panes.rows, panes.cells, panes.blobs), strict=True)
    for at, (name, rows) in enumerate(tables):
        if rows is None or not len(rows):
            continue
        owned = group.owned(rows, taken.keys)
        if is_pairs(name):
            owned = _under_one_mark(owned)
        if at == 0:
            found.tasks.append(_records_of_tasks(owned))
        yield name, owned.select(named(name).schema.names)


def _count(group: Group, records: Records, panes: Panes, found: Changed) -> None:
    """Count the records that came too late and those that arcs dropped."""
    if panes.late is not None:
        found.late += late_of(group, records, panes.late)
    if panes.gone is not None:
        found.dropped |= dropped_by(group, records, panes.gone)


def _taken(group: Group, records: Records) -> _Taken:
    """Return what a group takes of records. Raises `QueryFault`."""
    computation = group.computation
    if computation.join is None:
        layout = layout_of(computation)
        panes = panes_of(records, computation, group.streams, group.intake)
        return _Taken(panes, names_of(layout), layout.shape.key_names)
    sides = sides_of(records, computation, group.streams, group.intake)
    keys = [f"k{at}" for at in range(len(computation.join.on))]
    return _Taken(sides, (pairs_name(computation), "", ""), keys)


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


def bytes_of_tasks(rows: Any, size: int) -> Int64s:
    """Return rows of query, task, no records and bytes: each row of state is as long as another."""
    pairs, row = _tasks_of(rows)
    share = np.rint(np.bincount(row, minlength=len(pairs)) * (size / max(1, len(rows))))
    return np.column_stack([pairs, np.zeros(len(pairs), np.int64), share.astype(np.int64)])


def _records_of_tasks(owned: Any) -> Int64s:
    """Return rows of query, task, records and no bytes."""
    pairs, row = _tasks_of(owned)
    records = np.bincount(row, np.asarray(owned["s0"]), len(pairs))
    return np.column_stack([pairs, records.astype(np.int64), np.zeros(len(pairs), np.int64)])


def _tasks_of(rows: Any) -> tuple[Int64s, Int64s]:
    """Return the tasks that occur, as pairs of query and task, and which of them each row is of."""
    both = np.asarray(rows["query"]) * _TASKS + np.asarray(rows["task"])
    found, row = np.unique(both, return_inverse=True)
    return np.column_stack([found // _TASKS, found % _TASKS]), row
