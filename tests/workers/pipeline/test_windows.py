"""Window aggregates equal a plain loop over the records, however they are cut into batches."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workers.pipeline.tables import Subscriptions
from workers.pipeline.windows import (
    NO_ROWS,
    Column,
    Merged,
    Rows,
    keep_live,
    merge,
    panes_of,
    rows_of,
)

MINUTE = 60_000
Record = tuple[int, int, int | None]  # stream, event time (ms), value

records_in_order = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 10 * MINUTE), st.none() | st.integers(-500, 500)),
    max_size=40,
).map(lambda rows: sorted(rows, key=lambda row: row[1]))

# Query 7 reads streams 1 and 2, query 9 stream 2 alone.
PAIRS = Subscriptions(
    MINUTE, "speed", np.array([7, 7, 9]), np.zeros(3, np.int64), np.array([1, 2, 2])
)


def batch_rows(records: list[Record]) -> Rows:
    if not records:
        return NO_ROWS
    stream, ts, value = zip(*records, strict=True)
    valid = np.array([v is not None for v in value])
    values = np.array([v or 0 for v in value], np.int64)
    return rows_of(
        panes_of(np.array(stream, np.int64), np.array(ts, np.int64), values, valid, MINUTE), PAIRS
    )


def plain_loop(records: list[Record]) -> dict[tuple[int, int, int], tuple[int, ...]]:
    found: dict[tuple[int, int, int], list[int | None]] = defaultdict(list)
    for stream, ts, value in records:
        for query in {1: (7,), 2: (7, 9)}.get(stream, ()):
            found[query, stream, ts // MINUTE * MINUTE].append(value)
    return {key: summary(values) for key, values in found.items()}


def summary(values: list[int | None]) -> tuple[int, ...]:
    there = [value for value in values if value is not None]
    return (len(values), len(there), sum(there), *((min(there), max(there)) if there else ()))


def as_dict(rows: Rows) -> dict[tuple[int, int, int], tuple[int, ...]]:
    found = {}
    for row in rows.tolist():
        key = (row[Column.QUERY], row[Column.STREAM], row[Column.WINDOW])
        extremes = (row[Column.MINIMUM], row[Column.MAXIMUM]) if row[Column.N] else ()
        found[key] = (row[Column.COUNT], row[Column.N], row[Column.TOTAL], *extremes)
    return found


@given(records_in_order, st.lists(st.integers(0, 40), max_size=4))
def test_any_cut_into_batches_gives_the_plain_loops_windows(
    records: list[Record], cuts: list[int]
) -> None:
    """Emitted windows, newest word last, are those of one pass over all records."""
    state, emitted = NO_ROWS, {}
    bounds = sorted({0, len(records), *(min(cut, len(records)) for cut in cuts)})
    for low, high in pairwise(bounds):
        merged = merge(state, batch_rows(records[low:high]))
        state = merged.rows
        emitted.update(as_dict(merged.changed))
        assert merged.late == 0
    assert emitted == plain_loop(records)


def test_closed_window_leaves_the_state_and_its_records_count_as_late() -> None:
    """Beyond the lateness a record is counted and changes nothing."""
    first = merge(NO_ROWS, batch_rows([(1, 0, 5), (1, 9 * MINUTE, 5)]))
    assert as_dict(first.changed).keys() == {(7, 1, 0), (7, 1, 9 * MINUTE)}
    assert as_dict(first.rows).keys() == {(7, 1, 9 * MINUTE)}
    second: Merged = merge(first.rows, batch_rows([(1, 1, 8), (1, 2, 8)]))
    assert second.late == 2
    assert len(second.changed) == 0
    assert (second.rows == first.rows).all()


def test_record_within_the_lateness_still_counts() -> None:
    """The window before the newest is open."""
    first = merge(NO_ROWS, batch_rows([(1, 2 * MINUTE, 5)]))
    second = merge(first.rows, batch_rows([(1, MINUTE, 8)]))
    assert second.late == 0
    assert as_dict(second.changed) == {(7, 1, MINUTE): (1, 1, 8, 8, 8)}


def test_only_rows_of_live_runs_are_kept() -> None:
    """A query that left, or began a new run elsewhere, loses its rows here."""
    rows = merge(NO_ROWS, batch_rows([(1, 0, 5), (2, 0, 5)])).rows
    kept = rows[keep_live(rows, np.array([9]), np.array([0]))]
    assert set(kept[:, Column.QUERY].tolist()) == {9}
    assert not keep_live(rows, np.array([7, 9]), np.array([1, 1])).any()
    assert not keep_live(rows, np.array([], np.int64), np.array([], np.int64)).any()
