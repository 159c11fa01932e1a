"""Aggregator nodes: parts of windows, in any order and again and again, make each window once."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.wire.aggregates.finalize import finalize, newest_rows
from controlplane.wire.aggregates.state_schema import from_bytes, schema_named
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from tests.workers.pipeline.engine.evaluation.test_user_aggregates import TestRange
from tests.workers.pipeline.engine.given import changed_rows
from tests.workers.pipeline.engine.storage.test_window_state import COLUMNS, Row, records_of
from workers.pipeline.engine.advance import advance_state
from workers.pipeline.engine.assignment.subscriptions import Intake, NodeGroup, Subscription
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.engine.final_aggregation import (
    MERGED,
    REMOVED_TASK,
    KeyPartition,
    export_state,
    import_state,
    merge_parts,
)
from workers.pipeline.engine.storage.idle_streams import StreamClock
from workers.pipeline.engine.store import MemoryStore

assert TestRange is not None  # registers test_range
QUERY = 5
COMPUTATION = computation_of(
    QueryText(
        {"n": "count(*)", "high": "max(speed)", "d": "count_distinct(name)", "m": "median(speed)",
         "r": "test_range(speed)"}, key=["car"], window_s=2.0, slide_s=1.0
    ), COLUMNS,
)  # fmt: skip
ALONE = Subscription(QUERY, 0, (1, 2), 1, np.array([True]))
Parts = list[dict[str, list[Any]]]


def tasks_of(mine: list[bool]) -> Tasks:
    one = Subscription(QUERY, 0, (1, 2), len(mine), np.array(mine))
    return Tasks.of([NodeGroup.of(COMPUTATION, [one], Intake(column="to"))])


def parts_of(rows: list[Row], tasks: int, cuts: int, rng: np.random.Generator) -> Parts:
    """Return what two nodes with half of the tasks each give out, batch by batch."""
    half = [task < tasks // 2 for task in range(tasks)]
    nodes = [(MemoryStore(), tasks_of(half)), (MemoryStore(), tasks_of([not one for one in half]))]
    found: Parts = []
    for batch, at in enumerate(np.array_split(np.arange(len(rows)), cuts)):
        records = records_of([rows[place] for place in at], None)
        chosen = rng.integers(0, tasks, len(records)).astype(np.uint64)
        records = replace(records, extras={"to": chosen})
        tables: dict[str, list[Any]] = {}
        for store, mine in nodes:
            for name, _, table in changed_rows(advance_state(store, mine, records, {}, batch)):
                tables.setdefault(name, []).append(table)
        found.append(tables)
    return found


def seen(batches: list[list[tuple[str, Any]]]) -> dict[Any, Any]:
    """Return what a reader sees of what was given out, batch by batch."""
    tables: dict[str, list[tuple[int, Any]]] = {}
    for batch, given_out in enumerate(batches):
        for name, rows in given_out:
            tables.setdefault(name, []).append((batch, rows))
    parts = {name: newest_rows(schema_named(name), entries) for name, entries in tables.items()}
    windows = finalize(COMPUTATION, parts)
    return {(row.start_ms, row.key["car"]): dict(row.values) for row in windows}


def rows_of(rng: np.random.Generator, count: int) -> list[Row]:
    return [
        (int(rng.integers(1, 3)), int(rng.integers(0, 5_000)), int(rng.integers(0, 3)),
         str(rng.integers(0, 9)), int(rng.integers(0, 99)))
        for _ in range(count)
    ]  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), cuts=st.integers(1, 6), tasks=st.integers(2, 5))
def test_merged_windows_are_those_of_one_task(seed: int, cuts: int, tasks: int) -> None:
    """Every part is given twice, a hot key has parts everywhere, and aggregators take turns."""
    rng = np.random.default_rng(seed)
    rows = rows_of(rng, 60)
    store, members = MemoryStore(), tasks_of([True] * tasks).members
    merged = []
    for tables in parts_of(rows, tasks, cuts, rng):
        for _ in range(2):
            given_out, _ = merge_parts(store, members, {QUERY: tables}, {})
        merged.append([(name, table) for name, _, table in given_out])
        forms, store = export_state(store, QUERY), MemoryStore()
        import_state(store, QUERY, forms)
    one = Tasks.of([NodeGroup.of(COMPUTATION, [ALONE])])
    whole = advance_state(MemoryStore(), one, records_of(rows, None), {}, 1)
    assert seen(merged) == seen([[(name, table) for name, _, table in changed_rows(whole)]])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), counts=st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_aggregators_share_the_keys_in_any_number(seed: int, counts: list[int]) -> None:
    """When their number changes, each imports its keys from all."""
    rng = np.random.default_rng(seed)
    rows = rows_of(rng, 60)
    members = tasks_of([True] * 4).members
    stores, merged = [MemoryStore()], []
    for tables, count in zip(parts_of(rows, 4, len(counts), rng), counts, strict=True):
        if count != len(stores):
            exported = [export_state(store, QUERY) for store in stores]
            stores = [MemoryStore() for _ in range(count)]
            for place, store in enumerate(stores):
                for forms in exported:
                    import_state(store, QUERY, forms, KeyPartition(place, count))
        given_out = []
        for place, store in enumerate(stores):
            share = KeyPartition(place, count)
            own = {name: [share.of(schema_named(name), part) for part in parts]
                   for name, parts in tables.items()}  # fmt: skip
            emitted, faults = merge_parts(store, members, {QUERY: own}, {})
            assert not faults
            given_out += [(name, table) for name, _, table in emitted]
        merged.append(given_out)
    one = Tasks.of([NodeGroup.of(COMPUTATION, [ALONE])])
    whole = advance_state(MemoryStore(), one, records_of(rows, None), {}, 1)
    assert seen(merged) == seen([[(name, table) for name, _, table in changed_rows(whole)]])


def test_a_merged_window_has_one_row_per_key() -> None:
    """A reader need not know how many parts there were."""
    rng = np.random.default_rng(3)
    (tables,) = parts_of(rows_of(rng, 50), 4, 1, rng)
    given_out, _ = merge_parts(MemoryStore(), tasks_of([True] * 4).members, {QUERY: tables}, {})
    (rows,) = [table for name, _, table in given_out if name.startswith("s|")]
    places = rows.select(["pane", "k0"]).to_pylist()
    assert len(places) == len({tuple(place.values()) for place in places})
    assert {*rows["task"].to_pylist(), *rows["stream"].to_pylist()} == {0}


def parts_in_turn(batches: list[list[Row]]) -> Parts:
    """Return what one node with the only task gives out, batch by batch."""
    store, tasks = MemoryStore(), Tasks.of([NodeGroup.of(COMPUTATION, [ALONE])])
    found: Parts = []
    for batch, rows in enumerate(batches):
        changed = advance_state(store, tasks, records_of(rows, None), {}, batch)
        found.append({name: [table] for name, _, table in changed.windows})
    return found


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), counts=st.lists(st.integers(2, 6), min_size=2, max_size=6))
def test_windows_survive_that_tasks_are_removed_and_added_again(
    seed: int, counts: list[int]
) -> None:
    """A task that gets the number of a removed one starts without state, on any node."""
    rng = np.random.default_rng(seed)
    rows = rows_of(rng, 80)
    store, merged, before = MemoryStore(), [], 0
    nodes: dict[int, MemoryStore] = {}
    for batch, at in enumerate(np.array_split(np.arange(len(rows)), len(counts))):
        tasks = counts[batch]
        # A removed task leaves no state behind, wherever the next one of its number is.
        nodes = {task: nodes.get(task, MemoryStore()) for task in range(min(before, tasks))} | {
            task: MemoryStore() for task in range(before, tasks)
        }
        before = tasks
        tables: dict[str, list[Any]] = {}
        records = records_of([rows[place] for place in at], None)
        chosen = rng.integers(0, tasks, len(records)).astype(np.uint64)
        records = replace(records, extras={"to": chosen})
        for task, state in nodes.items():
            own = tasks_of([place == task for place in range(tasks)])
            for name, _, table in changed_rows(advance_state(state, own, records, {}, batch)):
                tables.setdefault(name, []).append(table)
        # The aggregator merges the parts of a batch in the next one, with its number of tasks.
        members = tasks_of([True] * counts[min(batch + 1, len(counts) - 1)]).members
        given_out, faults = merge_parts(store, members, {QUERY: tables}, {})
        assert not faults
        merged.append([(name, table) for name, _, table in given_out])
        if rng.random() < 0.3:
            forms, store = export_state(store, QUERY), MemoryStore()
            import_state(store, QUERY, forms)
    one = Tasks.of([NodeGroup.of(COMPUTATION, [ALONE])])
    whole = advance_state(MemoryStore(), one, records_of(rows, None), {}, 1)
    assert seen(merged) == seen([[(name, table) for name, _, table in changed_rows(whole)]])


def counts(given_out: list[tuple[str, Any, Any]]) -> dict[Any, int]:
    rows = [row for name, _, rows in given_out if name[0] == "s" for row in rows.to_pylist()]
    return {row["pane"]: row["s0"] for row in rows}


def test_a_window_keeps_what_a_stream_gave_that_is_ahead_of_others() -> None:
    """The merged window is one row: it is there until the slowest stream has passed it."""
    parts = parts_in_turn([[(1, 100, 0, "a", 5)], [(2, 200, 0, "a", 7)], [(2, 300, 0, "a", 9)]])
    store, members, watermarks = MemoryStore(), tasks_of([True]).members, {1: 10**6, 2: 200}
    for batch, tables in enumerate(parts, start=1):
        given_out, _ = merge_parts(store, members, {QUERY: tables}, watermarks if batch > 1 else {})
        assert counts(given_out) == {-1_000: batch, 0: batch}


def test_a_window_that_an_idle_stream_left_open_stays_closed_when_it_returns() -> None:
    """Also at the next aggregator node: what is there of the window is not replaced by less."""
    parts = parts_in_turn([[(2, 200, 0, "a", 7)], [(2, 900_000, 0, "a", 7)], [(1, 300, 0, "a", 9)]])
    store, members, idle_ms = MemoryStore(), tasks_of([True]).members, {1: 100, 2: 100}
    begun = StreamClock(1_000, 1_000, {2: 1_000}, idle_ms=idle_ms)
    merge_parts(store, members, {QUERY: parts[0]}, {2: 200}, begun)
    later = StreamClock(1_200, 1_000, {2: 1_200}, idle_ms=idle_ms)
    merge_parts(store, members, {QUERY: parts[1]}, {2: 900_000}, later)
    other = MemoryStore()
    import_state(other, QUERY, export_state(store, QUERY))
    returned = StreamClock(1_200, 1_000, {1: 1_200, 2: 1_200}, idle_ms=idle_ms)
    given_out, _ = merge_parts(other, members, {QUERY: parts[2]}, {1: 300, 2: 900_000}, returned)
    assert counts(given_out) == {}


def test_what_is_closed_or_gone_is_forgotten() -> None:
    """Behind the marks of the streams, and with the query."""
    rng = np.random.default_rng(4)
    (tables,) = parts_of(rows_of(rng, 50), 4, 1, rng)
    members = tasks_of([True]).members

    def kept(store: MemoryStore) -> int:
        return sum(len(data) for name, data in store.items() if name.startswith(f"{MERGED}/"))

    store = MemoryStore()
    merge_parts(store, members, {QUERY: tables}, {})
    assert kept(store) > 0
    merge_parts(store, {}, {}, {})
    assert kept(store) == 0
    merge_parts(store, members, {QUERY: tables}, {})
    other = MemoryStore()
    import_state(other, QUERY, export_state(store, QUERY))
    assert kept(store) == 0
    assert kept(other) > 0
    merge_parts(store, members, {QUERY: tables}, {1: 10**9, 2: 10**9})
    assert kept(store) == 0
    assert isinstance(tables[next(iter(tables))][0], pa.Table)


def test_nothing_of_an_exported_query_is_left() -> None:
    """Another query of the store keeps its parts; a second export has none."""
    rng = np.random.default_rng(1)
    store, members = MemoryStore(), tasks_of([True] * 2).members
    for tables in parts_of(rows_of(rng, 20), 2, 1, rng):
        merge_parts(store, members, {QUERY: tables}, {})
    exported = export_state(store, QUERY)
    assert any(exported.values())
    assert export_state(store, QUERY) == {}
    # The node that gets them knows that a task is gone since: a new task 1 starts without parts.
    other, name = MemoryStore(), "s|int|sum-int,max-int"
    import_state(other, QUERY, exported)
    assert merge_parts(other, tasks_of([True]).members, {}, {}) == ([], {})
    both, left = (
        set(from_bytes(schema_named(name), forms[name])["task"].to_pylist())
        for forms in (exported, export_state(other, QUERY))
    )
    assert (both, left) == ({0, 1}, {0, REMOVED_TASK})
    assert [name for name in store if name.startswith(f"{MERGED}/")] == []
