"""Aggregates of users and sketches through panes, batches and windows."""

import struct
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from controlplane.wire.aggregates.state_schema import blobs_schema, cells_schema
from controlplane.wire.language.registered import aggregate
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from tests.workers.pipeline.engine.storage.test_window_state import COLUMNS, owned_rows, records_of
from workers.pipeline.engine.aggregation.panes import panes_of
from workers.pipeline.engine.evaluation.user_aggregates import user_aggregate
from workers.pipeline.engine.storage.window_state import changed_windows, merge_state

ROWS = [(1, 100 * at, at % 2, "ab"[at % 3 == 0], at - 10) for at in range(40)]
QUERY = QueryText(
    {"best": "top_k(name, 2)", "odd": "test_range(speed)", "half": "median(speed)"},
    key=["car"],
    window_s=2.0,
    slide_s=1.0,
)


@aggregate(takes="int", gives="int")
class TestRange:
    """Largest less smallest."""

    __test__ = False

    def partial(self, values: Any) -> bytes:
        return struct.pack("<qq", values.min(), values.max())

    def merge(self, left: bytes, right: bytes) -> bytes:
        one, other = struct.unpack("<qq", left), struct.unpack("<qq", right)
        return struct.pack("<qq", min(one[0], other[0]), max(one[1], other[1]))

    def result(self, state: bytes) -> int:
        least, most = struct.unpack("<qq", state)
        return int(most - least)


def speeds(start: int, car: int) -> list[int]:
    return [row[4] for row in ROWS if start <= row[1] < start + 2_000 and row[2] == car]


def test_a_users_aggregate_is_merged_over_panes_and_batches() -> None:
    computation = computation_of(QUERY, COLUMNS)
    form = blobs_schema(tuple(key.kind for _, key in computation.key))
    work = user_aggregate("test_range")
    state: Any = form.arrow.empty_table()
    seen = {}
    for batch in (ROWS[:7], ROWS[7:30], ROWS[30:]):
        blobs = panes_of(records_of(batch, None), computation).blobs
        found = merge_state(form, state, owned_rows(blobs), lambda *_: work)
        state = found.rows
        for row in changed_windows(form, found, computation.window, lambda *_: work).to_pylist():
            assert row["a"] == 1
            seen[row["pane"], row["k0"]] = work.result(row["state"])
    assert len(seen) == 10
    assert all(value == np.ptp(speeds(*place)) for place, value in seen.items())


def test_cells_are_merged_over_panes_and_batches() -> None:
    computation = computation_of(QUERY, COLUMNS)
    form = cells_schema(tuple(key.kind for _, key in computation.key))
    state: Any = form.arrow.empty_table()
    for batch in (ROWS[:7], ROWS[7:30], ROWS[30:]):
        cells = panes_of(records_of(batch, None), computation).cells
        found = merge_state(form, state, owned_rows(cells))
        state = found.rows
    everything = type(found)(found.rows, np.ones(len(found.rows), np.bool_))
    counted: Counter[tuple[int, int, str]] = Counter()
    for row in changed_windows(form, everything, computation.window).to_pylist():
        if row["a"] == 0:
            counted[row["pane"], row["k0"], row["t"]] = row["added"]
            assert row["largest"] is None
    exact = Counter(
        (start, row[2], row[3])
        for row in ROWS
        for start in range(-1_000, 5_000, 1_000)
        if start <= row[1] < start + 2_000
    )
    assert counted == exact


def test_a_name_that_no_module_registers_is_an_error_here() -> None:
    with pytest.raises(LookupError, match="no module registers"):
        user_aggregate("never_registered")


def test_a_taken_name_is_refused() -> None:
    with pytest.raises(ValueError, match="already"):
        aggregate(takes="int", gives="int", name="test_range")(Counter)
    assert pa.types.is_binary(blobs_schema(()).arrow.field("state").type)
