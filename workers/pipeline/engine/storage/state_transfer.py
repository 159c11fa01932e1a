"""Taking the state of tasks out of a node's store, and putting it into another's."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from controlplane.wire.aggregates.state_schema import from_bytes, is_pairs, schema_named, to_bytes
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.assignment.tasks import Task, Tasks
from workers.pipeline.engine.evaluation.records import sample_of, sample_of_query
from workers.pipeline.engine.failures.fault import FaultReason
from workers.pipeline.engine.failures.isolation import (
    EXPORT,
    IMPORT,
    no_sample,
    run_isolated,
    run_stage,
)
from workers.pipeline.engine.storage.idle_streams import CLOSED, StreamClock
from workers.pipeline.engine.storage.pages import SIZES, Pages, page_of, rows_of
from workers.pipeline.engine.storage.watermarks import advance_watermarks, newest_panes
from workers.pipeline.engine.storage.window_state import merge_state
from workers.pipeline.engine.store import Store, read_json, write_json


def export_state(
    store: Store, leaving: Sequence[Task], faults: dict[int, FaultReason]
) -> dict[Task, dict[str, bytes]]:
    """Take the state of tasks out of the store: by task, the bytes of its rows by state schema.

    Of a join also up to where its windows are closed. The tasks of a query whose state cannot be
    written leave without it; the query gets into `faults`.
    """
    sizes: dict[str, int] = read_json(store, SIZES)
    result: dict[Task, dict[str, bytes]] = {task: {} for task in leaving}
    pairs = np.array(leaving, np.int64).reshape(-1, 2)
    visited = sorted(np.unique(page_of(pairs[:, 0], pairs[:, 1])).tolist())
    for name in sorted({key.rpartition("/")[0] for key in sizes}):
        pages = Pages(store, schema_named(name), name, sizes)
        rows = pages.load(visited)
        query, task = np.asarray(rows["query"]), np.asarray(rows["task"])
        exported = np.zeros(len(rows), np.bool_)
        for value in leaving:
            selected = (query == value[0]) & (task == value[1])
            if selected.any():
                for data in _export_rows(value[0], rows.filter(pa.array(selected)), faults):
                    result[value][name] = data
                exported |= selected
        if exported.any():
            pages.save(rows.filter(pa.array(~exported)), visited)
    write_json(store, SIZES, sizes)
    clock = StreamClock.read(store)
    for item in leaving:
        if (closed := clock.export_query(item[0])) is not None:
            result[item][CLOSED] = closed
    return result


def _export_rows(query: int, rows: Any, faults: dict[int, FaultReason]) -> list[bytes]:
    return run_stage(EXPORT, [query], lambda: to_bytes(rows), faults, lambda _: sample_of(rows))


def import_state(
    store: Store,
    tasks: Tasks,
    arriving: Mapping[Task, Mapping[str, bytes]],
    faults: dict[int, FaultReason],
) -> None:
    """Put the state of tasks into the store, where it merges with what they have there.

    State that cannot be read or merged is left out; its query gets into `faults`.
    """
    sizes: dict[str, int] = read_json(store, SIZES)
    by_form: dict[str, list[Any]] = {}
    clock = StreamClock.read(store)
    knows_more = False
    for (query, _), states in arriving.items():
        for name, data in states.items():
            if name == CLOSED:
                clock.import_query(query, data)
                knows_more = True
                continue
            by_form.setdefault(name, []).extend(_import_rows(query, name, data, faults))
    for name, tables in by_form.items():
        rows = pa.concat_tables([schema_named(name).arrow.empty_table(), *tables])
        # The stream of a row of a join is the query.
        if not is_pairs(name):
            advance_watermarks(store, newest_panes(rows))
        merge_into_pages(Pages(store, schema_named(name), name, sizes), tasks, rows, faults)
    if knows_more:
        clock.save(store, tasks.joins)
    write_json(store, SIZES, sizes)


def _import_rows(query: int, name: str, data: bytes, faults: dict[int, FaultReason]) -> list[Any]:
    return run_stage(
        IMPORT, [query], lambda: from_bytes(schema_named(name), data), faults, no_sample
    )


def merge_into_pages(pages: Pages, tasks: Tasks, rows: Any, faults: dict[int, FaultReason]) -> None:
    """Merge rows into pages of their schema; queries that raise get into `faults`."""
    touched = page_of(np.asarray(rows["query"]), np.asarray(rows["task"]))
    visited = sorted(np.unique(touched).tolist())
    state = pages.load(visited)
    work = tasks.work if "state" in pages.form.arrow.names else None
    queries = np.unique(np.asarray(rows["query"])).tolist()
    parts = run_isolated(
        IMPORT, queries,
        lambda some: merge_state(pages.form, rows_of(some, state), rows_of(some, rows), work),
        faults, lambda query: sample_of_query(query, rows),
    )  # fmt: skip
    others = state.filter(pa.array(~np.isin(np.asarray(state["query"]), queries)))
    pages.save(pa.concat_tables([others, *(part.rows for part in parts)]), visited)
