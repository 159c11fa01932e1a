"""Partial aggregation: the records of a batch as rows of panes for the tasks of a node."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.state_schema import (
    StateSchema,
    is_pairs,
    pairs_name,
    schema_named,
    schema_names,
)
from controlplane.wire.drop_counts import DropCounter, periods_of
from controlplane.wire.limits import TimeLimit, time_limit
from controlplane.wire.routing.drop_rules import Edge
from workers.pipeline.engine.aggregation.panes import BatchPanes, panes_of
from workers.pipeline.engine.aggregation.selection import BY_LADDER, BY_RULE
from workers.pipeline.engine.assignment.subscriptions import (
    NOT_OWNED,
    DropRules,
    NodeGroup,
    Subscription,
)
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.complete_windows import (
    CompleteWindows,
    WindowBlock,
    block_of,
    group_alike,
    split_complete,
)
from workers.pipeline.engine.evaluation.records import Int64s, Records, sample_of, sample_of_records
from workers.pipeline.engine.failures.fault import FaultReason
from workers.pipeline.engine.failures.isolation import (
    ASSIGN,
    COUNT,
    EVALUATE,
    run_isolated,
    run_stage,
)
from workers.pipeline.engine.hashing import hash_rows
from workers.pipeline.engine.joins import join_sides

Mask = NDArray[np.bool_]
# A query has fewer tasks than this: query and task fit into one number.
_TASKS: Final = 1 << 20
# A shortage of memory with so few records is the query's, not the batch's.
LEAST_SLICE: Final = 1_000
# The search for the record on which a query fails may take so long.
_SEARCH_SECONDS: Final = 1.0


@dataclass
class BatchChanges:
    """The changes of a batch on a node: windows by state schema, and measures.

    `blocks`: windows that were complete immediately, each once for several queries. `late`: late
    records, once for queries with the same computation; `late_by_query`: of each query. `dropped`,
    `ladder_dropped`: records by edge (stream, query), by its rule or the ladder; `drop_counts`: the
    same by event time; `tasks`: rows of
    query, task, records imported and bytes of state, of the tasks that were looked at; `state_us`:
    processor time of the state; `faults`: by query what of it could not be computed: nothing of it
    was taken then.
    """

    windows: list[tuple[str, StateSchema, Any]] = field(default_factory=list)
    blocks: list[WindowBlock] = field(default_factory=list)
    ended: set[int] = field(default_factory=set)
    late: int = 0
    late_by_query: Counter[int] = field(default_factory=Counter)
    state_bytes: int = 0
    dropped: dict[Edge, int] = field(default_factory=dict)
    ladder_dropped: dict[Edge, int] = field(default_factory=dict)
    drop_counts: DropCounter = field(default_factory=DropCounter)
    tasks: list[Int64s] = field(default_factory=list)
    state_us: int = 0
    faults: dict[int, FaultReason] = field(default_factory=dict)

    def take(self, other: "BatchChanges") -> None:
        """Add what another part of the batch changed after this."""
        self.windows += other.windows
        self.blocks += other.blocks
        self.ended |= other.ended
        self.late += other.late
        self.late_by_query.update(other.late_by_query)
        self.state_bytes = other.state_bytes
        _add(self.dropped, other.dropped)
        _add(self.ladder_dropped, other.ladder_dropped)
        self.drop_counts.take(other.drop_counts)
        self.tasks += other.tasks
        self.state_us += other.state_us
        self.faults |= other.faults


def _add(counts: dict[Edge, int], others: Mapping[Edge, int]) -> None:
    for edge, records in others.items():
        counts[edge] = counts.get(edge, 0) + records


def partial_aggregates(
    tasks: Tasks,
    records: Records | Sequence[Records] | None,
    changes: BatchChanges,
    complete: CompleteWindows | None = None,
) -> dict[str, list[Any]]:
    """Return the rows that a batch adds to the state, by state schema.

    `records`: those of the same columns together; `complete`: which windows need no state, None for
    none.
    """
    every = [records] if isinstance(records, Records) else list(records or ())
    added: dict[str, list[Any]] = {}
    for group in tasks.groups:
        # Records of other streams may lack its columns, and what split nodes add for this query.
        wanted = [item for item in every if item.streams & group.streams]
        if wanted:
            for name, rows in _group_aggregates(group, wanted, changes, complete):
                added.setdefault(name, []).append(rows)
    return added


def _group_aggregates(
    group: NodeGroup,
    records: Sequence[Records],
    changes: BatchChanges,
    complete: CompleteWindows | None,
) -> Iterator[tuple[str, Any]]:
    """Yield by state schema the rows that the queries of one computation take of the records."""
    taken = [part for record in records for part in _evaluated(group, record, changes.faults)]
    for some, part in _without_complete(group, taken, changes, complete):
        yield from _assigned(some, part, changes)
    for part in taken:
        _count(group, part, changes)


def _without_complete(
    group: NodeGroup,
    taken: Sequence["_Taken"],
    changes: BatchChanges,
    complete: CompleteWindows | None,
) -> Iterator[tuple[NodeGroup, "_Taken"]]:
    """Yield the groups and rows that pass through the state; complete windows become blocks."""
    takers, others = (None, group) if complete is None or not taken else complete.takers(group)
    if others is not None:
        yield from ((others, part) for part in taken)
    if complete is None or takers is None:
        return
    parts = split_complete(complete, group.computation, [part.panes for part in taken])
    for part, (whole, rest) in zip(taken, parts, strict=True):
        if whole is not None:
            _add_blocks(takers, part._replace(panes=whole), changes)
        if rest is not None:
            yield takers, part._replace(panes=rest)


def _add_blocks(group: NodeGroup, complete: "_Taken", changes: BatchChanges) -> None:
    """Add complete windows, once for all queries with the same streams and tasks."""
    for item, recipients in group_alike(group):
        counts = BatchChanges()
        # Of a query that is split, other nodes may have all of these windows.
        tables = [(name, rows) for name, rows in _assigned(item, complete, counts) if len(rows)]
        changes.faults |= counts.faults
        if tables:
            changes.blocks.append(block_of(recipients, tables))
            changes.tasks += _for_each(recipients, counts.tasks)


def _for_each(recipients: Sequence[Subscription], rows: Sequence[Int64s]) -> list[Int64s]:
    """Return rows of query, task and more of one query for each of several."""
    queries = np.array([recipient.query for recipient in recipients], np.int64)
    result = []
    for some in rows:
        every = np.tile(some, (len(queries), 1))
        every[:, 0] = np.repeat(queries, len(some))
        result.append(every)
    return result


class _Taken(NamedTuple):
    """The panes of a group, the names of their schemas, and the key columns."""

    records: Records
    panes: BatchPanes
    forms: Sequence[str]
    keys: Sequence[str]


def _evaluated(group: NodeGroup, records: Records, faults: dict[int, FaultReason]) -> list[_Taken]:
    """Return the panes of a group, in slices if memory is short; nothing for a fault."""
    queries = [subscription.query for subscription in group.subscriptions]
    if queries[0] in faults or not records.streams & group.streams:
        return []
    can_halve = len(records) > LEAST_SLICE
    try:
        return run_stage(
            EVALUATE, queries, lambda: _taken(group, records), faults,
            lambda error: sample_of_records(_culprit(group, records, error), group.streams),
            (MemoryError,) if can_halve else (),
        )  # fmt: skip
    except MemoryError:
        if not can_halve:
            raise
    half = len(records) // 2
    first = _evaluated(group, records.part(0, half), faults)
    return first + _evaluated(group, records.part(half, len(records)), faults)


def _culprit(group: NodeGroup, records: Records, error: Exception) -> Records:
    """Return the fewest records on which the group raises, as halving finds them in a second."""
    if isinstance(error, MemoryError) or isinstance(error.__cause__, TimeLimit):
        return records
    stop = time.monotonic() + _SEARCH_SECONDS
    while len(records) > 1 and time.monotonic() < stop:
        half = len(records) // 2
        parts = (records.part(0, half), records.part(half, len(records)))
        bad = next((part for part in parts if _raises(group, part)), None)
        if bad is None:
            break
        records = bad
    return records


def _raises(group: NodeGroup, records: Records) -> bool:
    try:
        with time_limit(_SEARCH_SECONDS):
            _taken(group, records)
    except TimeLimit:
        return False
    except Exception:  # noqa: BLE001 - the question is whether it raises
        return True
    return False


def _assigned(group: NodeGroup, taken: _Taken, changes: BatchChanges) -> Iterator[tuple[str, Any]]:
    """Yield the rows of the group's tasks by state schema."""
    tables = zip(taken.forms, (taken.panes.rows, taken.panes.cells, taken.panes.blobs), strict=True)
    for index, (name, rows) in enumerate(tables):
        if rows is None or not len(rows):
            continue
        for owned in _owned(group, name, rows, taken.keys, changes.faults):
            if index == 0:
                changes.tasks.append(_task_records(owned))
            yield name, owned.select(schema_named(name).arrow.names)


def _owned(
    group: NodeGroup, name: str, rows: Any, keys: Sequence[str], faults: dict[int, FaultReason]
) -> list[Any]:
    """Return the rows of panes as rows of the tasks that take them."""

    def owned(queries: Sequence[int]) -> Any:
        result = group.of_queries(queries).owned(rows, keys)
        if not is_pairs(name):
            return result
        # The rows of joins have the query as their stream: all its streams close a window.
        return result.set_column(result.schema.get_field_index("stream"), "stream", result["query"])

    queries = [subscription.query for subscription in group.subscriptions]
    return run_isolated(ASSIGN, queries, owned, faults, lambda _: sample_of(rows))


def _count(group: NodeGroup, taken: _Taken, changes: BatchChanges) -> None:
    """Count late and dropped records."""
    if taken.panes.late is None and taken.panes.dropped is None:
        return
    queries = [subscription.query for subscription in group.subscriptions]
    counts = run_isolated(COUNT, queries, lambda some: _counted(group.of_queries(some), taken),
                      changes.faults, lambda _: sample_of(taken.panes.rows))  # fmt: skip
    # Each part of the queries has the late records of all that share the computation.
    changes.late += next(iter(counts[0].late.values()), 0) if counts else 0
    for late, by_rules, by_ladder, by_time in counts:
        changes.late_by_query.update(late)
        _add(changes.dropped, by_rules)
        _add(changes.ladder_dropped, by_ladder)
        changes.drop_counts.take(by_time)


class _Counts(NamedTuple):
    """Late records by query, and by edge those that rules and the ladder dropped; by event time."""

    late: dict[int, int]
    by_rules: dict[Edge, int]
    by_ladder: dict[Edge, int]
    by_time: DropCounter


def _counted(group: NodeGroup, taken: _Taken) -> _Counts:
    """Return the counts of a group."""
    records, panes, intake = taken.records, taken.panes, group.intake
    late = {} if panes.late is None else late_records(group, records, panes.late)
    by_time = DropCounter()
    if panes.dropped is None:
        return _Counts(late, {}, {}, by_time)
    by_rules = dropped_records(group, records, panes.dropped == BY_RULE, intake.drop_rules, by_time)
    by_ladder = dropped_records(
        group, records, panes.dropped == BY_LADDER, intake.ladder_rules, by_time
    )
    return _Counts(late, by_rules, by_ladder, by_time)


def dropped_records(
    group: NodeGroup, records: Records, dropped: Mask, drop_rules: DropRules, by_time: DropCounter
) -> dict[Edge, int]:
    """Return the records that each edge of a group dropped on this node by some drop rules.

    `dropped`: bool[n], the records that these rules drop. Records of a query whose task is on
    another node are counted there. `by_time` counts them, too.
    """
    result: dict[Edge, int] = {}
    for stream, rule in drop_rules:
        rows = np.flatnonzero(dropped & (records.stream == stream))
        periods = periods_of(records.ts_ms[rows])
        for subscription in group.subscriptions if len(rows) else ():
            query, count, own = subscription.query, len(rows), periods
            if subscription.routed_tasks > 1:
                here = rows[_is_here(group, subscription, records, stream)[rows]]
                count, own = len(here), periods_of(records.ts_ms[here])
            result[stream, query] = count
            by_time.drop(stream, query, rule, own)
    return result


def late_records(group: NodeGroup, records: Records, late: Mask) -> dict[int, int]:
    """Return how many of the late records have their task of a query here, by query.

    `late`: bool[n]. Queries that share a computation have the same late records of a stream.
    """
    result: Counter[int] = Counter()
    for stream in group.streams:
        rows = np.flatnonzero(late & (records.stream == stream))
        for subscription in group.subscriptions if len(rows) else ():
            if stream not in subscription.streams:
                continue
            count = len(rows)
            if subscription.routed_tasks > 1:
                count = int(_is_here(group, subscription, records, stream)[rows].sum())
            result[subscription.query] += count
    return result


def _is_here(group: NodeGroup, subscription: Subscription, records: Records, stream: int) -> Mask:
    """Return which records of a stream have their task of a query on this node."""
    if subscription.routed_tasks == 1:
        return np.ones(len(records), np.bool_)
    if group.intake.column:
        task = records.extras[group.intake.column].astype(np.int64)
    else:
        computation = group.computation
        # The condition of a join is about pairs.
        where = None if computation.join else computation.where
        keys = records.evaluator.hashable(computation.task_key(stream), where)
        count = np.uint64(subscription.routed_tasks)
        task = (hash_rows(keys, len(records)) % count).astype(np.int64)
    return np.asarray(subscription.task_of[task] != NOT_OWNED)


def _taken(group: NodeGroup, records: Records) -> _Taken:
    """Return the panes of a group. Raises the errors of its computation."""
    computation = group.computation
    if computation.join is None:
        layout = layout_of(computation)
        panes = panes_of(records, computation, group.streams, group.intake)
        return _Taken(records, panes, schema_names(layout), layout.schema.key_names)
    sides = join_sides(records, computation, group.streams, group.intake)
    keys = [f"k{index}" for index in range(len(computation.join.on))]
    return _Taken(records, sides, (pairs_name(computation), "", ""), keys)


def task_bytes(rows: Any, size: int) -> Int64s:
    """Return rows of query, task, no records and bytes: each row of state is as long as another."""
    pairs, row = _tasks_of(rows)
    share = np.rint(np.bincount(row, minlength=len(pairs)) * (size / max(1, len(rows))))
    return np.column_stack([pairs, np.zeros(len(pairs), np.int64), share.astype(np.int64)])


def _task_records(owned: Any) -> Int64s:
    """Return rows of query, task, records and no bytes."""
    pairs, row = _tasks_of(owned)
    records = np.bincount(row, np.asarray(owned["s0"]), len(pairs))
    return np.column_stack([pairs, records.astype(np.int64), np.zeros(len(pairs), np.int64)])


def _tasks_of(rows: Any) -> tuple[Int64s, Int64s]:
    """Return the tasks that occur, as pairs of query and task, and which of them each row is of."""
    both = np.asarray(rows["query"]) * _TASKS + np.asarray(rows["task"])
    result, row = np.unique(both, return_inverse=True)
    return np.column_stack([result // _TASKS, result % _TASKS]), row
