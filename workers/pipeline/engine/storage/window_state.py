"""The state of many tasks of one shape: a table of panes, merged batch by batch.

A row is one pane of one key of one stream, as one task has it. Rows merge in any order; so a task
can be exported and imported elsewhere.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.aggregates.grouping import merge_rows
from controlplane.wire.aggregates.state_schema import CELL, StateSchema
from controlplane.wire.query import Window
from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.evaluation.records import NO_WATERMARK, Int64s
from workers.pipeline.engine.evaluation.user_aggregates import UserAggregates, merge_user_states

_FRESH: Final = "fresh"


@dataclass(frozen=True)
class WindowClosing:
    """When windows of a query end permanently: its windows, and its allowed lateness."""

    window: Window
    lateness_ms: int


@dataclass(frozen=True)
class MergedState:
    """State after a batch. `is_changed`: which of its rows got something in this batch."""

    rows: Any
    is_changed: NDArray[np.bool_]


def merge_state(
    form: StateSchema, state: Any, added: Any, work: UserAggregates | None = None
) -> MergedState:
    """Merge rows into the state of the same tasks; both are tables of the state schema's schema.

    `work` is needed for the states of users' aggregates.
    """
    marked = pa.concat_tables(
        [
            state.append_column(_FRESH, pa.repeat(pa.scalar(0, pa.int8()), len(state))),
            added.append_column(_FRESH, pa.repeat(pa.scalar(1, pa.int8()), len(added))),
        ]
    )
    plain = _grouped(form, marked, work)
    is_changed = np.asarray(plain[_FRESH]).astype(np.bool_)
    return MergedState(plain.select(form.arrow.names), is_changed)


def _grouped(form: StateSchema, marked: Any, work: UserAggregates | None) -> Any:
    """Merge equal rows, of which `is_changed` is 1 where any row had it."""
    plain = merge_rows(form, marked, form.identity, [(_FRESH, "max", _FRESH)])
    return plain if work is None else merge_user_states(plain, work)


def is_closed(
    rows: Any, closing: Mapping[int, WindowClosing], watermarks: Mapping[int, int]
) -> Any:
    """Return which rows no record that is on time can change any more, bool[rows].

    `watermarks`: the newest event time of each stream, `closing` by query.
    """
    queries, query_of = np.unique(np.asarray(rows["query"]), return_inverse=True)
    streams, stream_of = np.unique(np.asarray(rows["stream"]), return_inverse=True)
    known = [closing[query] for query in queries.tolist()]
    size, slide, lateness = (
        np.array(values, np.int64)[query_of]
        for values in (
            [value.window.size_ms for value in known],
            [element.window.slide_ms for element in known],
            [item.lateness_ms for item in known],
        )
    )
    newest = np.array([watermarks.get(stream, NO_WATERMARK) for stream in streams.tolist()])[
        stream_of
    ]
    last_end = np.asarray(rows["pane"]) // slide * slide + size
    return (newest != NO_WATERMARK) & (
        last_end <= np.where(newest == NO_WATERMARK, 0, newest - lateness)
    )


def mark_open_changed(
    merged_state: MergedState, closing: Mapping[int, WindowClosing], watermarks: Mapping[int, int]
) -> MergedState:
    """Return the state with all rows as changed that were open at these watermarks."""
    rows, is_changed = merged_state.rows, merged_state.is_changed
    return MergedState(rows, is_changed | ~is_closed(rows, closing, watermarks))


def windows_to_republish(
    again: Iterable[Any],
    changed: Iterable[Any],
    closing: Mapping[int, WindowClosing],
    watermarks: Mapping[int, int],
) -> list[Any]:
    """Return the windows to emit: all that were open, and the changed ones of the others.

    `again`: tables of all windows that have an open pane. A sliding window that was closed shares
    panes with open ones, but the state no longer has all of its panes: its row, which is final,
    must not be written from the rest.
    """
    every = [(rows, ~is_closed(rows, closing, watermarks)) for rows in again]
    every += [(rows, is_closed(rows, closing, watermarks)) for rows in changed]
    return [rows.filter(pa.array(selected)) for rows, selected in every]


def changed_windows(
    form: StateSchema, merged_state: MergedState, window: Window, work: UserAggregates | None = None
) -> Any:
    """Return the windows that changed, combined from all their panes.

    The window-level part of a query (paper 001, section 4.2): a table like the state's, with
    `pane` being where the window begins.
    """
    if window.panes == 1:
        return whole_windows(form, merged_state)
    row, start = windows_of(np.asarray(merged_state.rows["pane"]), window, window.pane_ms)
    spread = merged_state.rows.take(pa.array(row))
    column_index = spread.schema.get_field_index("pane")
    moved = MergedState(
        spread.set_column(column_index, "pane", pa.array(start)), merged_state.is_changed[row]
    )
    return whole_windows(form, merge_equal_rows(form, moved, work))


def merge_equal_rows(
    form: StateSchema, merged_state: MergedState, work: UserAggregates | None = None
) -> MergedState:
    """Merge rows that have become equal."""
    rows = merged_state.rows.append_column(
        _FRESH, pa.array(merged_state.is_changed.astype(np.int8))
    )
    plain = _grouped(form, rows, work)
    return MergedState(plain.select(form.arrow.names), np.asarray(plain[_FRESH]).astype(np.bool_))


def whole_windows(form: StateSchema, merged_state: MergedState) -> Any:
    """Return the changed rows, and of a sketch that changed all others of the same window.

    A reader of a window must not search earlier writes for its other cells.
    """
    rows, is_changed = merged_state.rows, merged_state.is_changed
    names = [name for name in form.identity if name not in CELL]
    if len(names) == len(form.identity) or is_changed.all():
        return rows.filter(pa.array(is_changed))
    marked = rows.select(names).append_column("row", pa.array(np.arange(len(rows))))
    marked = marked.append_column(_FRESH, pa.array(is_changed.astype(np.int8)))
    windows = marked.group_by(names, use_threads=False).aggregate(
        [("row", "list"), (_FRESH, "max")]
    )
    changed = windows.filter(pc.equal(windows[f"{_FRESH}_max"], 1))
    return rows.take(pc.list_flatten(changed["row_list"]))


def windows_of(pane: Int64s, window: Window, length_ms: int) -> tuple[Int64s, Int64s]:
    """Return the windows of panes of a length, or of records (1 ms): (which pane, window's start).

    `pane`: where the panes begin (ms).
    """
    slide = window.slide_ms
    first = -((window.size_ms - length_ms - pane) // slide)
    last = pane // slide
    count = last - first + 1
    row = np.repeat(np.arange(len(pane)), count)
    within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return row, (first[row] + within) * slide
