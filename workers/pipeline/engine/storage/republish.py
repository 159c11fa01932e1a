"""Emitting all open windows again, after what was written of them was lost."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.assignment.closing import WindowClosing
from workers.pipeline.engine.storage.window_state import MergedState, is_closed

Watermarks = Mapping[int, int]


def mark_open_changed(
    merged_state: MergedState, closing: Mapping[int, WindowClosing], watermarks: Watermarks
) -> MergedState:
    """Return the state with all rows that were open at these marks as changed ones."""
    return MergedState(
        merged_state.rows,
        merged_state.is_changed | ~is_closed(merged_state.rows, closing, watermarks),
    )


def windows_to_republish(
    again: Sequence[Any],
    changed: Iterable[Any],
    closing: Mapping[int, WindowClosing],
    watermarks: Watermarks,
) -> list[Any]:
    """Return the windows to emit: all that were open, and the changed ones of the others.

    `again`: tables of all windows that have an open pane. A sliding window that was closed shares
    panes with open ones, but the state no longer has all of its panes: its row, which is final,
    must not be written from the rest.
    """
    open_ = [_those(rows, ~is_closed(rows, closing, watermarks)) for rows in again]
    return [*open_, *(_those(rows, is_closed(rows, closing, watermarks)) for rows in changed)]


def _those(rows: Any, which: Any) -> Any:
    return rows.filter(pa.array(which))
