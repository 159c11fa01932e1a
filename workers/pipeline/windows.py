"""Window aggregates as plain integer matrices: the state of a node, and how it grows.

A row is one (query, stream, window): columns as in `Column`. Everything is int64, sums included,
so results do not depend on the order of records nor on where batches were cut.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.pipeline.tables import Subscriptions

Int64s = NDArray[np.int64]
Rows = NDArray[np.int64]  # shape (rows, len(Column))


class Column(IntEnum):
    """The columns of a window row; milliseconds are event time."""

    QUERY = 0
    RUN = 1
    STREAM = 2
    WINDOW = 3  # start of the window, ms
    WINDOW_MS = 4  # its length
    COUNT = 5  # records
    N = 6  # records with a value
    TOTAL = 7
    MINIMUM = 8
    MAXIMUM = 9


NO_ROWS: Final[Rows] = np.empty((0, len(Column)), np.int64)
# What minimum and maximum hold while no record had a value.
_HIGHEST: Final = np.iinfo(np.int64).max
_LOWEST: Final = np.iinfo(np.int64).min
# Room for streams in the combined (query, stream) sort key.
_STREAM_BITS: Final = 24
# Records this much older than the newest window of their stream still count.
LATENESS_MS: Final = 120_000


@dataclass(frozen=True)
class Panes:
    """Aggregates of one batch per (stream, window), shared by all queries that read the stream.

    Arrays of equal length, sorted by stream, then window.
    """

    stream: Int64s
    window: Int64s
    count: Int64s
    n: Int64s
    total: Int64s
    minimum: Int64s
    maximum: Int64s


@dataclass(frozen=True)
class Merged:
    """State after a batch, the rows that changed in it, and the records that came too late."""

    rows: Rows
    changed: Rows
    late: int


def panes_of(
    stream: Int64s, ts_ms: Int64s, value: Int64s, valid: NDArray[np.bool_], window_ms: int
) -> Panes:
    """Aggregate records (arrays of equal length) per stream and tumbling window."""
    window = ts_ms // window_ms * window_ms
    order = np.lexsort((window, stream))
    stream, window, value, valid = stream[order], window[order], value[order], valid[order]
    starts = _group_starts(stream, window)
    return Panes(
        stream=stream[starts],
        window=window[starts],
        count=np.diff(np.append(starts, len(stream))),
        n=_reduce(np.add, valid.astype(np.int64), starts),
        total=_reduce(np.add, np.where(valid, value, 0), starts),
        minimum=_reduce(np.minimum, np.where(valid, value, _HIGHEST), starts),
        maximum=_reduce(np.maximum, np.where(valid, value, _LOWEST), starts),
    )


def rows_of(panes: Panes, subscriptions: Subscriptions) -> Rows:
    """Return the window rows that `panes` add to each subscribed query."""
    low = np.searchsorted(panes.stream, subscriptions.stream, "left")
    high = np.searchsorted(panes.stream, subscriptions.stream, "right")
    width = high - low
    pair = np.repeat(np.arange(len(width)), width)
    # Positions low..high-1 of every pair, laid end to end.
    pane = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width - low, width)
    rows = np.empty((len(pair), len(Column)), np.int64)
    rows[:, Column.QUERY] = subscriptions.query[pair]
    rows[:, Column.RUN] = subscriptions.run[pair]
    rows[:, Column.STREAM] = subscriptions.stream[pair]
    rows[:, Column.WINDOW_MS] = subscriptions.window_ms
    rows[:, Column.WINDOW] = panes.window[pane]
    rows[:, Column.COUNT] = panes.count[pane]
    rows[:, Column.N] = panes.n[pane]
    rows[:, Column.TOTAL] = panes.total[pane]
    rows[:, Column.MINIMUM] = panes.minimum[pane]
    rows[:, Column.MAXIMUM] = panes.maximum[pane]
    return rows


def merge(state: Rows, added: Rows, lateness_ms: int = LATENESS_MS) -> Merged:
    """Merge a batch's rows into the state of the same queries.

    A row older than the newest window of its (query, stream) by more than the larger of window
    length and lateness is late: its records are counted and left out. Windows that old are
    closed, and leave the state.
    """
    late = _is_late(state, added, lateness_ms)
    on_time = added[~late]
    rows, fresh = _merge_equal(np.concatenate((state, on_time)), len(state))
    return Merged(
        rows=rows[~_is_closed(rows, lateness_ms)],
        changed=rows[fresh],
        late=int(added[late, Column.COUNT].sum()),
    )


def keep_live(rows: Rows, queries: Int64s, runs: Int64s) -> NDArray[np.bool_]:
    """Return which rows belong to a live run; `queries` is sorted, `runs` is beside it."""
    if not len(queries):
        return np.zeros(len(rows), np.bool_)
    at = np.minimum(np.searchsorted(queries, rows[:, Column.QUERY]), len(queries) - 1)
    same_query = queries[at] == rows[:, Column.QUERY]
    return np.asarray(same_query & (runs[at] == rows[:, Column.RUN]))


def _keys(rows: Rows) -> Int64s:
    return np.asarray(rows[:, Column.QUERY] << _STREAM_BITS | rows[:, Column.STREAM])


def _is_late(state: Rows, added: Rows, lateness_ms: int) -> NDArray[np.bool_]:
    if not len(state) or not len(added):
        return np.zeros(len(added), np.bool_)
    newest_key, newest = _newest_windows(state)
    keys = _keys(added)
    at = np.minimum(np.searchsorted(newest_key, keys), len(newest_key) - 1)
    known = newest_key[at] == keys
    return np.asarray(known & (added[:, Column.WINDOW] < newest[at] - _kept_ms(added, lateness_ms)))


def _is_closed(rows: Rows, lateness_ms: int) -> NDArray[np.bool_]:
    if not len(rows):
        return np.zeros(0, np.bool_)
    newest_key, newest = _newest_windows(rows)
    at = np.searchsorted(newest_key, _keys(rows))
    return np.asarray(rows[:, Column.WINDOW] < newest[at] - _kept_ms(rows, lateness_ms))


def _kept_ms(rows: Rows, lateness_ms: int) -> Int64s:
    return np.maximum(rows[:, Column.WINDOW_MS], lateness_ms)


def _newest_windows(rows: Rows) -> tuple[Int64s, Int64s]:
    keys = _keys(rows)
    order = np.lexsort((rows[:, Column.WINDOW], keys))
    keys, windows = keys[order], rows[order, Column.WINDOW]
    last = np.append(np.flatnonzero(keys[1:] != keys[:-1]), len(keys) - 1)
    return keys[last], windows[last]


def _merge_equal(rows: Rows, old: int) -> tuple[Rows, NDArray[np.bool_]]:
    """Merge rows of the same key and window; say which got something from beyond row `old`."""
    if not len(rows):
        return rows, np.zeros(0, np.bool_)
    keys = _keys(rows)
    order = np.lexsort((rows[:, Column.WINDOW], keys))
    rows, keys = rows[order], keys[order]
    starts = _group_starts(keys, rows[:, Column.WINDOW])
    merged = rows[starts].copy()
    for column in (Column.COUNT, Column.N, Column.TOTAL):
        merged[:, column] = _reduce(np.add, rows[:, column], starts)
    merged[:, Column.MINIMUM] = _reduce(np.minimum, rows[:, Column.MINIMUM], starts)
    merged[:, Column.MAXIMUM] = _reduce(np.maximum, rows[:, Column.MAXIMUM], starts)
    fresh = np.logical_or.reduceat(order >= old, starts)
    return merged, fresh


def _group_starts(first: Int64s, second: Int64s) -> NDArray[np.intp]:
    if not len(first):
        return np.empty(0, np.intp)
    changes = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return np.concatenate(([0], np.flatnonzero(changes) + 1))


def _reduce(operation: np.ufunc, values: Int64s, starts: NDArray[np.intp]) -> Int64s:
    if not len(starts):
        return np.empty(0, np.int64)
    return np.asarray(operation.reduceat(values, starts))
