"""Evaluation: all tasks of one node over one batch, vectorised.

Records are aggregated once per (stream, window) and only these few panes are handed to the
queries, so the work per record does not grow with the number of queries that share a stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from workers.pipeline.envelope import Envelope
from workers.pipeline.tables import Subscriptions
from workers.pipeline.windows import NO_ROWS, Int64s, Rows, panes_of, rows_of

_ZERO: Final[Any] = 0  # the stubs want a scalar of the column's own type


@dataclass(frozen=True)
class Records:
    """The records of one node in one batch, as columns beside the stream of each."""

    stream: Int64s
    columns: pa.Table

    @property
    def ts_ms(self) -> Int64s:
        """Return event times in milliseconds."""
        return _integers(self.columns["ts"])

    def value(self, name: str) -> tuple[Int64s, NDArray[np.bool_]]:
        """Return a column's values (0 where null) and which of them are there."""
        column = self.columns[name]
        return _integers(column.fill_null(_ZERO)), np.asarray(column.is_valid())


def records_of(envelopes: Sequence[Envelope]) -> Records | None:
    """Return the records of all envelopes together, None where there are none."""
    filled = [envelope for envelope in envelopes if envelope.records.num_rows]
    if not filled:
        return None
    return Records(
        np.concatenate([envelope.stream_of_record() for envelope in filled]),
        pa.Table.from_batches([envelope.records for envelope in filled]),
    )


def added_rows(records: Records | None, subscriptions: Sequence[Subscriptions]) -> Rows:
    """Return the window rows that a batch adds to the queries of a node."""
    if records is None or not subscriptions:
        return NO_ROWS
    ts_ms = records.ts_ms
    parts = []
    for group in subscriptions:
        value, valid = records.value(group.value)
        panes = panes_of(records.stream, ts_ms, value, valid, group.window_ms)
        parts.append(rows_of(panes, group))
    return np.concatenate(parts)


def _integers(column: "pa.ChunkedArray[Any]") -> Int64s:
    return np.asarray(column.cast(pa.int64()))
