"""Panes, their merging, windows and closing, against sums over the records themselves."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from workers.pipeline.engine.aggregation.panes import BatchPanes, panes_of
from workers.pipeline.engine.evaluation.records import BlockRun, Records
from workers.pipeline.engine.storage.window_state import MergedState, WindowClosing, is_closed

COLUMNS = {"ts": Kind.TIME, "car": Kind.INT, "name": Kind.TEXT, "speed": Kind.INT}
# The stubs take fields of one type only.
FIELDS: Any = [("ts", pa.timestamp("ms", "UTC")), ("car", pa.int32()), ("name", pa.string()),
     ("speed", pa.int32())]  # fmt: skip
QUERY = QueryText(
    {
        "n": "count(*)",
        "valued": "count(speed)",
        "sum": "sum(speed)",
        "mean": "mean(speed)",
        "low": "min(speed)",
        "high": "max(speed)",
    },
    where="car <> 3",
    key=["car", "name"],
    window_s=1.0,
    slide_s=0.4,
    lateness_s=0.5,
)


Row = tuple[int, int, int, str | None, int | None]


def records_of(rows: Sequence[Row], mark: int | None) -> Records:
    """Return records of (stream, ts, car, name, speed), sorted by stream, all with one mark."""
    rows = sorted(rows, key=lambda row: row[0])
    table = pa.Table.from_pylist(
        [dict(zip(("ts", "car", "name", "speed"), row[1:], strict=True)) for row in rows],
        pa.schema(FIELDS),
    )
    streams = [row[0] for row in rows]
    runs = [BlockRun(stream, streams.count(stream), mark) for stream in sorted(set(streams))]
    times = np.array([row[1] for row in rows], np.int64)
    return Records.of(table, times, runs, event_time="ts")


def owned(panes: BatchPanes) -> Any:
    """Return panes as rows of a task."""
    return owned_rows(panes.rows)


def owned_rows(rows: Any) -> Any:
    """Return rows of panes, cells or states as those of a task."""
    for at, (name, value) in enumerate((("query", 7), ("run", 1), ("task", 0))):
        rows = rows.add_column(at, name, pa.array(np.full(len(rows), value, np.int64)))
    return rows


def test_aggregates_share_their_slots() -> None:
    layout = layout_of(computation_of(QUERY, COLUMNS))
    assert len(layout.schema.slots) == 5
    assert layout.places == ((0,), (1,), (1, 2), (1, 2), (3,), (4,))


def test_late_records_are_counted_for_those_who_wanted_them() -> None:
    computation = computation_of(QUERY, COLUMNS)
    rows = [(1, 99_499, 1, "a", 5), (1, 99_500, 1, "a", 5), (1, 10, 3, "a", 5)]
    found = panes_of(records_of(rows, 100_000), computation)
    assert found.late.tolist() == [True, False, False]
    assert panes_of(records_of(rows, None), computation).late is None


@pytest.mark.parametrize(("mark", "closed"), [(None, 0), (1_899, 0), (1_900, 1), (2_300, 2)])
def test_windows_close_when_nothing_on_time_can_come(mark: int | None, closed: int) -> None:
    """The pane at 400 is last in the window that begins there and ends at 1400."""
    computation = computation_of(QUERY, COLUMNS)
    shape = layout_of(computation).schema
    rows = owned(
        panes_of(records_of([(1, 500, 1, "a", 1), (1, 900, 1, "a", 1)], None), computation)
    )
    closing = {7: WindowClosing(computation.window, computation.lateness_ms)}
    gone = is_closed(rows, closing, {} if mark is None else {1: mark})
    assert gone.sum() == closed
    assert len(MergedState(rows, gone).rows) == 2
    assert shape.keys == (Kind.INT, Kind.TEXT)
