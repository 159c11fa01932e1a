"""Panes, their merging, windows and closing, against sums over the records themselves."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.state_schema import slots_schema
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Window, computation_of
from controlplane.wire.query_text import QueryText
from workers.pipeline.engine.aggregation.panes import BatchPanes, panes_of
from workers.pipeline.engine.evaluation.records import BlockRun, Records
from workers.pipeline.engine.storage.window_state import (
    MergedState,
    WindowClosing,
    changed_windows,
    is_closed,
    merge_state,
    windows_of,
)

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


def test_every_record_is_in_the_windows_around_it() -> None:
    window = Window(1_000, 400)
    row, start = windows_of(np.array([0, 200, 800, -200]), window, window.pane_ms)
    for pane in (0, 200, 800, -200):
        mine = start[row == [0, 200, 800, -200].index(pane)].tolist()
        assert mine == [
            s for s in range(-2_000, 2_000, 400) if s <= pane and pane + 200 <= s + 1_000
        ]


def test_late_records_are_counted_for_those_who_wanted_them() -> None:
    computation = computation_of(QUERY, COLUMNS)
    rows = [(1, 99_499, 1, "a", 5), (1, 99_500, 1, "a", 5), (1, 10, 3, "a", 5)]
    found = panes_of(records_of(rows, 100_000), computation)
    assert found.late.tolist() == [True, False, False]
    assert panes_of(records_of(rows, None), computation).late is None


row = st.tuples(
    st.integers(1, 2),
    st.integers(0, 3_000),
    st.integers(1, 4),
    st.sampled_from(["a", "b", None]),
    st.one_of(st.none(), st.integers(-50, 50)),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(row, min_size=1, max_size=12), min_size=1, max_size=4))
def test_windows_are_those_of_all_records_however_they_were_cut(
    batches: Sequence[Sequence[Row]],
) -> None:
    computation = computation_of(QUERY, COLUMNS)
    form = slots_schema(layout_of(computation).schema)
    state, seen = form.arrow.empty_table(), {}
    for batch in batches:
        found = merge_state(form, state, owned(panes_of(records_of(batch, None), computation)))
        state = found.rows
        for window in changed_windows(form, found, computation.window).to_pylist():
            identity = tuple(window[name] for name in ("stream", "pane", "k0", "k1"))
            seen[identity] = [window[f"s{at}"] for at in range(5)]
    assert seen == expected([row for batch in batches for row in batch])


def expected(rows: list[Any]) -> dict[Any, list[Any]]:
    """Return the slots of every window by going through all records for each."""
    groups: dict[Any, list[int | None]] = defaultdict(list)
    for stream, ts, car, name, speed in rows:
        if car == 3:
            continue
        for start in range(-1_200, 3_200, 400):
            if start <= ts < start + 1_000:
                groups[stream, start, car, name].append(speed)
    return {identity: summary(values) for identity, values in groups.items()}


def summary(values: list[int | None]) -> list[Any]:
    there = [value for value in values if value is not None]
    if not there:
        return [len(values), 0, None, None, None]
    return [len(values), len(there), sum(there), min(there), max(there)]


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
