"""One node: what its tasks make of a batch, and how their state goes on.

Pure: state is read from and written to a `Store`, so the same code runs in Spark's state store and
in a dictionary.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.forms import Form, from_bytes, named, names_of, to_bytes
from controlplane.wire.layout import layout_of
from controlplane.wire.query import Window
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.pages import PAGES, SIZES, Pages, Store, page_of
from workers.pipeline.engine.panes import panes_of
from workers.pipeline.engine.records import Records
from workers.pipeline.engine.state import Closing, Merged, is_closed, merged, windows_of
from workers.pipeline.engine.subscriptions import Group, Subscription
from workers.pipeline.engine.users import WorkOf, work_of

MARKS: Final = "marks"
Task = tuple[int, int]


@dataclass(frozen=True)
class Member:
    """A query as a node knows it: its subscription, windows, and aggregates of users by place."""

    subscription: Subscription
    closing: Closing
    works: Mapping[int, str]


@dataclass(frozen=True)
class Tasks:
    """What a node has to compute: groups of queries, and each query."""

    groups: tuple[Group, ...]
    members: Mapping[int, Member]

    @classmethod
    def of(cls, groups: Iterable[Group]) -> "Tasks":
        """Put the groups of a node together."""
        kept = tuple(groups)
        return cls(kept, {one.query: _member(group, one) for group in kept
                          for one in group.subscriptions})  # fmt: skip

    @property
    def split(self) -> list[int]:
        """Return the queries of which other nodes may have tasks."""
        return [query for query, one in self.members.items() if one.subscription.tasks > 1]

    def work(self, query: int, at: int) -> Any:
        """Return the user's aggregate of a query."""
        return work_of(self.members[query].works[at])


def _member(group: Group, subscription: Subscription) -> Member:
    computation = group.computation
    works = {one.at: one.aggregate.kept.sketch for one in layout_of(computation).sketches}
    return Member(subscription, Closing(computation.window, computation.lateness_ms), works)


@dataclass
class Changed:
    """What a batch changed on a node: windows by form of rows, and counts."""

    windows: list[tuple[str, Form, Any]] = field(default_factory=list)
    ended: set[int] = field(default_factory=set)
    late: int = 0
    state_bytes: int = 0


def advanced(
    store: Store, tasks: Tasks, records: Records | None, newest: Mapping[int, int], batch: int
) -> Changed:
    """Take a batch's records into the state of a node's tasks.

    `newest`: the newest event time of each stream in this batch. One page per form is visited in
    turn besides those that change, so that closed windows and ended queries leave.
    """
    found = Changed()
    marks = _marks(store, newest)
    added = _added(tasks, records, found)
    sizes: dict[str, int] = json.loads(store.get(SIZES) or b"{}")
    before = dict(sizes)
    known = {key.rpartition("/")[0] for key in sizes}
    for name in sorted({*added, *known}):
        form = named(name)
        pages = Pages(store, form, name, sizes)
        rows = pa.concat_tables([form.schema.empty_table(), *added.get(name, [])])
        _advance_form(pages, tasks, rows, marks, batch, found)
    if sizes != before:
        store.put(SIZES, json.dumps(sizes).encode())
    found.state_bytes = sum(sizes.values())
    return found


def _marks(store: Store, newest: Mapping[int, int]) -> dict[int, int]:
    """Return the newest event time of each stream so far, and keep it."""
    row = json.loads(store.get(MARKS) or b"{}")
    marks = {int(stream): ms for stream, ms in row.items()}
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
        layout = layout_of(group.computation)
        panes = panes_of(records, group.computation, group.streams)
        found.late += panes.late
        tables = zip(names_of(layout), (panes.rows, panes.cells, panes.blobs), strict=True)
        for name, rows in tables:
            if rows is not None and len(rows):
                owned = group.owned(rows, layout.shape.key_names)
                added.setdefault(name, []).append(owned.select(named(name).schema.names))
    return added


def _advance_form(
    pages: Pages, tasks: Tasks, added: Any, marks: Mapping[int, int], batch: int, found: Changed
) -> None:
    touched = page_of(np.asarray(added["query"]), np.asarray(added["task"]))
    visited = sorted({*np.unique(touched).tolist(), batch % PAGES})
    state = pages.load(visited)
    live = is_live(state, tasks.members)
    found.ended |= set(np.unique(np.asarray(state["query"])[~live]).tolist()) - set(tasks.members)
    work = tasks.work if "state" in pages.form.schema.names else None
    result = merged(pages.form, state.filter(pa.array(live)), added, work)
    for rows in _windows(pages.form, tasks, result, work):
        found.windows.append((pages.name, pages.form, rows))
    closing = {query: member.closing for query, member in tasks.members.items()}
    open_ = ~is_closed(result.rows, closing, marks)
    pages.save(result.rows if open_.all() else result.rows.filter(pa.array(open_)), visited)


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
        yield windows_of(form, part, kind or Window(1, 1), work)


def taken_out(store: Store, leaving: Sequence[Task]) -> dict[Task, dict[str, bytes]]:
    """Take the state of tasks out of the store: by task, the bytes of its rows by form."""
    sizes: dict[str, int] = json.loads(store.get(SIZES) or b"{}")
    found: dict[Task, dict[str, bytes]] = {task: {} for task in leaving}
    pairs = np.array(leaving, np.int64).reshape(-1, 2)
    visited = sorted(np.unique(page_of(pairs[:, 0], pairs[:, 1])).tolist())
    for name in sorted({key.rpartition("/")[0] for key in sizes}):
        pages = Pages(store, named(name), name, sizes)
        rows = pages.load(visited)
        query, task = np.asarray(rows["query"]), np.asarray(rows["task"])
        gone = np.zeros(len(rows), np.bool_)
        for one in leaving:
            mine = (query == one[0]) & (task == one[1])
            if mine.any():
                found[one][name] = to_bytes(rows.filter(pa.array(mine)))
                gone |= mine
        if gone.any():
            pages.save(rows.filter(pa.array(~gone)), visited)
    store.put(SIZES, json.dumps(sizes).encode())
    return found


def put_in(store: Store, tasks: Tasks, arriving: Mapping[Task, Mapping[str, bytes]]) -> None:
    """Put the state of tasks into the store, where it merges with what they have there."""
    sizes: dict[str, int] = json.loads(store.get(SIZES) or b"{}")
    by_form: dict[str, list[Any]] = {}
    for states in arriving.values():
        for name, data in states.items():
            by_form.setdefault(name, []).append(from_bytes(named(name), data))
    for name, tables in by_form.items():
        form = named(name)
        pages, rows = Pages(store, form, name, sizes), pa.concat_tables(tables)
        touched = page_of(np.asarray(rows["query"]), np.asarray(rows["task"]))
        visited = sorted(np.unique(touched).tolist())
        work = tasks.work if "state" in form.schema.names else None
        pages.save(merged(form, pages.load(visited), rows, work).rows, visited)
    store.put(SIZES, json.dumps(sizes).encode())
