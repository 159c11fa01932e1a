"""Merging: what several tasks have of a window, combined by the query's aggregator node.

A task emits its part of a window whole whenever it changes. The aggregator node keeps the newest
part of each task and emits the window again; so a part that comes twice changes nothing. It
keeps the parts of a window until all streams of the query have passed it: a merged window is one
row, which a part that was forgotten would be missing from.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from controlplane.wire.aggregates.finalize import newest_rows
from controlplane.wire.aggregates.state_schema import (
    CELL,
    PLACE,
    StateSchema,
    from_bytes,
    schema_named,
    to_bytes,
)
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.assignment.tasks import Member
from workers.pipeline.engine.evaluation.records import NO_WATERMARK, sample_of
from workers.pipeline.engine.evaluation.user_aggregates import UserAggregates, user_aggregate
from workers.pipeline.engine.failures.fault import FaultReason
from workers.pipeline.engine.failures.isolation import AGGREGATOR, no_sample, run_stage
from workers.pipeline.engine.hashing import hash_rows
from workers.pipeline.engine.storage.idle_streams import StreamClock
from workers.pipeline.engine.storage.widening import Widening
from workers.pipeline.engine.storage.window_state import (
    MergedState,
    is_closed,
    merge_equal_rows,
    whole_windows,
)
from workers.pipeline.engine.store import Store, read_json, write_json

MERGED: Final = "merged"
# By query up to where (event time, ms) its windows are closed, and what the clock was when it came.
CLOSED: Final = "merged closed"
# By query a number of tasks that none of its stored parts exceeds.
TASKS: Final = "merged tasks"
# The task of parts whose tasks were removed. Such a part gets no more records, and a task that gets
# the same number later starts parts of its own.
REMOVED_TASK: Final = -1
# What distinguishes the parts of a window and incarnation: a merged window has 0 there.
_PARTS: Final = ("task", "stream")
Tables = Mapping[str, Sequence[Any]]


class KeyPartition(NamedTuple):
    """The keys that an aggregator node has: those whose hash modulo `nodes` is `place`."""

    place: int
    nodes: int

    def of(self, form: StateSchema, rows: Any) -> Any:
        """Return the rows of these keys."""
        if self.nodes == 1:
            return rows
        names = [name for name in form.identity if name not in (*PLACE, *CELL)]
        hashes = hash_rows([rows[name] for name in names], len(rows))
        return rows.filter(pa.array(hashes % np.uint64(self.nodes) == np.uint64(self.place)))


WHOLE: Final = KeyPartition(0, 1)


def merge_parts(
    store: Store,
    members: Mapping[int, Member],
    parts: Mapping[int, Tables],
    watermarks: Mapping[int, int],
    clock: StreamClock | None = None,
) -> tuple[list[tuple[str, StateSchema, Any]], dict[int, FaultReason]]:
    """Take new parts of the windows of these queries; return the windows that changed, and faults.

    `parts`: by query the tables of its parts by the name of the state schema, oldest first.
    `watermarks`: the newest event time of each stream as those who gave the parts knew it: a window
    behind it is closed, as no part of it can come any more. Queries that are not among `members`
    are forgotten. Faults are what the merging of a query, by its id, could not compute. `clock`: by
    which streams are idle.
    """
    known: dict[str, list[str]] = read_json(store, MERGED)
    for ended in [query for query in known if int(query) not in members]:
        _forget(store, known, ended)
    result: list[tuple[str, StateSchema, Any]] = []
    faults: dict[int, FaultReason] = {}
    task_counts: dict[str, int] = read_json(store, TASKS)
    closes = _close_windows(store, members, watermarks, clock or StreamClock())
    for query, tables in parts.items():
        work = partial(_merge_query, store, members[query], tables, closes[query])
        for taken in run_stage(AGGREGATOR, [query], work, faults, partial(_sample, tables)):
            names = known.setdefault(str(query), [])
            for name, windows, kept, tasks in taken:
                task_counts[str(query)] = max(tasks, task_counts.get(str(query), 0))
                result.append((name, schema_named(name), windows))
                store.put(f"{MERGED}/{query}/{name}", kept)
                if name not in names:
                    names.append(name)
    _combine_removed(store, members, known, task_counts, faults)
    write_json(store, MERGED, known)
    return result, faults


def _combine_removed(
    store: Store,
    members: Mapping[int, Member],
    known: Mapping[str, Sequence[str]],
    task_counts: Mapping[str, int],
    faults: dict[int, FaultReason],
) -> None:
    """Combine the stored parts of tasks that were removed since the batch before, by window."""
    now = {query: members[int(query)].subscription.tasks for query in known}
    for query, tasks in now.items():
        for name in known[query] if task_counts[query] > tasks else ():
            key = f"{MERGED}/{query}/{name}"
            work = partial(
                _without_removed, schema_named(name), store.get(key), members[int(query)]
            )
            for combined in run_stage(AGGREGATOR, [int(query)], work, faults, no_sample):
                store.put(key, combined)
    counts = {query: min(tasks, task_counts[query]) for query, tasks in now.items()}
    write_json(store, TASKS, counts)


def _without_removed(form: StateSchema, data: bytes | None, member: Member) -> bytes:
    """Return stored parts with those of removed tasks as parts of `REMOVED_TASK`."""
    rows = from_bytes(form, data)
    task = np.asarray(rows["task"])
    is_removed = (task >= member.subscription.tasks) | (task == REMOVED_TASK)
    removed = rows.filter(pa.array(is_removed))
    column = pa.array(np.full(len(removed), REMOVED_TASK))
    removed = removed.set_column(rows.schema.get_field_index("task"), "task", column)
    users = _work(member) if "state" in form.arrow.names else None
    unchanged = np.zeros(len(removed), np.bool_)
    combined = merge_equal_rows(form, MergedState(removed, unchanged), users).rows
    return to_bytes(pa.concat_tables([rows.filter(pa.array(~is_removed)), combined]))


def widen_state(
    store: Store, members: Mapping[int, Member], widening: Widening, faults: dict[int, FaultReason]
) -> None:
    """Convert the stored parts of queries to their present schemas; errors become faults."""
    known: dict[str, list[str]] = read_json(store, MERGED)
    for query, member in members.items():
        kept = {name: [from_bytes(schema_named(name), store.get(f"{MERGED}/{query}/{name}"))]
                for name in known.get(str(query), ())}  # fmt: skip
        assert member.computation is not None
        work = partial(widening.convert_parts, kept, query, member.computation)
        for tables in run_stage(AGGREGATOR, [query], work, faults, no_sample):
            for name in kept:
                store.remove(f"{MERGED}/{query}/{name}")
            for name, rows in tables.items():
                store.put(f"{MERGED}/{query}/{name}", to_bytes(pa.concat_tables(rows)))
            if kept:
                known[str(query)] = list(tables)
    write_json(store, MERGED, known)


class _ClosedUntil(NamedTuple):
    """Up to where (event time, ms) the windows of a query were closed before, and are now."""

    before_ms: int
    now_ms: int


def _close_windows(
    store: Store, members: Mapping[int, Member], watermarks: Mapping[int, int], clock: StreamClock
) -> dict[int, _ClosedUntil]:
    """Close the windows of each query up to the slowest of its streams that are not idle."""
    known = read_json(store, CLOSED)
    result: dict[int, _ClosedUntil] = {}
    rows: dict[str, list[int]] = {}
    for query, member in members.items():
        before_ms, begun_ms = known.get(str(query), [NO_WATERMARK, clock.now_ms])
        now_ms = clock.slowest(watermarks, member.subscription.streams, begun_ms)
        result[query] = _ClosedUntil(before_ms, max(before_ms, now_ms))
        rows[str(query)] = [result[query].now_ms, begun_ms]
    write_json(store, CLOSED, rows)
    return result


def _merge_query(
    store: Store, member: Member, tables: Tables, closes: _ClosedUntil
) -> list[tuple[str, Any, bytes, int]]:
    """Return by schema name the changed windows of a query, its state as bytes, its task count.

    Nothing is written. Raises whatever the query's merging raises. Parts for windows that were
    closed before are left out: those of a stream that was idle and returned.
    """
    result, query = [], member.subscription.query
    for name, rows in tables.items():
        form, key = schema_named(name), f"{MERGED}/{query}/{name}"
        incarnation = member.subscription.incarnation
        state = _of_incarnation(from_bytes(form, store.get(key)), incarnation)
        new = [_open(_of_incarnation(row, incarnation), member, closes.before_ms) for row in rows]
        kept, changed = _merge(form, state, new, incarnation, _work(member))
        tasks = 1 + int(np.max(np.asarray(kept["task"]), initial=REMOVED_TASK))
        result.append((name, changed, to_bytes(_open(kept, member, closes.now_ms)), tasks))
    return result


def _sample(tables: Tables, _error: Exception) -> str:
    """Return the first rows of the parts."""
    return next((sample_of(rows) for parts in tables.values() for rows in parts if len(rows)), "")


def export_state(store: Store, query: int) -> dict[str, bytes]:
    """Remove the parts of a query from the store and return their bytes by schema name."""
    known: dict[str, list[str]] = read_json(store, MERGED)
    names = known.get(str(query), [])
    result = {name: store.get(f"{MERGED}/{query}/{name}") or b"" for name in names}
    if names:
        _forget(store, known, str(query))
        write_json(store, MERGED, known)
    for name in (TASKS, CLOSED):
        values = read_json(store, name)
        if str(query) in values:
            result[name] = json.dumps(values.pop(str(query))).encode()
            write_json(store, name, values)
    return result


def import_state(
    store: Store, query: int, forms: Mapping[str, bytes], share: KeyPartition = WHOLE
) -> None:
    """Add what another node kept of a query to the store, as far as the share has the keys."""
    known: dict[str, list[str]] = read_json(store, MERGED)
    present = known.get(str(query), [])
    names = [name for name in forms if name not in (CLOSED, TASKS)]
    for name in names:
        key, form = f"{MERGED}/{query}/{name}", schema_named(name)
        rows = share.of(form, from_bytes(form, forms[name]))
        others = from_bytes(form, store.get(key) if name in present else None)
        store.put(key, to_bytes(pa.concat_tables([others, rows])))
    if names:
        known[str(query)] = list(dict.fromkeys([*present, *names]))
        write_json(store, MERGED, known)
    if TASKS in forms:
        tasks = read_json(store, TASKS)
        tasks[str(query)] = max(json.loads(forms[TASKS]), tasks.get(str(query), 0))
        write_json(store, TASKS, tasks)
    if CLOSED in forms:
        closed, imported = read_json(store, CLOSED), json.loads(forms[CLOSED])
        # Of several sources the least, as their keys differ.
        closed[str(query)] = [*map(min, imported, closed.get(str(query), imported))]
        write_json(store, CLOSED, closed)


def _forget(store: Store, known: dict[str, list[str]], query: str) -> None:
    for name in known.pop(query):
        store.remove(f"{MERGED}/{query}/{name}")


def _of_incarnation(rows: Any, incarnation: int) -> Any:
    """Return the rows of an incarnation; those of an earlier one stay separate."""
    own_rows = np.asarray(rows["run"]) == incarnation
    return rows if own_rows.all() else rows.filter(pa.array(own_rows))


def _merge(
    form: StateSchema, state: Any, new: Sequence[Any], incarnation: int, work: UserAggregates
) -> tuple[Any, Any]:
    """Return the newest parts, and the windows with new parts, merged as a row of `incarnation`."""
    entries = [(0, state), *((1, rows) for rows in new)]
    marked = newest_rows(form, entries)
    is_changed = np.asarray(marked["batch"]) == 1
    rows = marked.select(form.arrow.names)
    same = rows
    for name, value in {**dict.fromkeys(_PARTS, 0), "run": incarnation}.items():
        column = pa.array(np.full(len(rows), value, np.int64))
        same = same.set_column(same.schema.get_field_index(name), name, column)
    users = work if "state" in form.arrow.names else None
    return rows, whole_windows(form, merge_equal_rows(form, MergedState(same, is_changed), users))


def _open(rows: Any, member: Member, until_ms: int) -> Any:
    """Return the rows of windows that are open if a query is closed up to a time."""
    subscription = member.subscription
    # Rows of joins have no stream.
    watermarks = dict.fromkeys((0, *subscription.streams), until_ms)
    closed = is_closed(rows, {subscription.query: member.closing}, watermarks)
    return rows.filter(pa.array(~closed)) if closed.any() else rows


def _work(member: Member) -> UserAggregates:
    return lambda _, index: user_aggregate(member.user_aggregates[index])
