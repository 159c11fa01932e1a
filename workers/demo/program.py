"""The program of a demonstration: streams, records and queries, moment by moment.

A moment is a number of milliseconds since the replay began for the first time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
# Event time is replayed faster than it passed, loop behind loop: one day it is ahead of the clock.
MAX_FUTURE_S: Final = 10 * 365 * 86_400.0
# Demonstrations end thousands of queries an hour: their rows and windows go after six hours.
RETENTION_S: Final = 6 * 3600


@dataclass(frozen=True)
class ProgramQuery:
    """A query that should be live: its name, its streams, and what it computes.

    `text`: the query as the API takes it; `tasks`: over how many tasks its keys are split;
    `key_grouping`: how keys find their task.
    """

    name: str
    streams: tuple[str, ...]
    text: Mapping[str, Any] = field(default_factory=dict, hash=False)
    tasks: int = 1
    key_grouping: str = ""

    def body(self) -> dict[str, Any]:
        """Return the query as a body of the API."""
        return {
            "name": self.name,
            "streams": list(self.streams),
            "text": dict(self.text),
            "tasks": self.tasks,
            "key_grouping": self.key_grouping,
            "retention_s": RETENTION_S,
        }


class Program(Protocol):
    """One demonstration.

    `slug`: its cluster; `prefixes`: of the names of its queries; other queries of the cluster are
    not ended; `key`: the column of hot keys.
    """

    slug: str
    prefixes: Sequence[str]
    key: str

    def declarations(self) -> list[dict[str, Any]]:
        """Return the streams as the API registers them."""

    def records_between(self, after: int, until: int) -> dict[str, pa.RecordBatch]:
        """Return the records of the moments (after, until] by stream, in order of time."""

    def queries_at(self, moment: int) -> Sequence[ProgramQuery]:
        """Return the queries that should be live at a moment."""

    def queries_by_key(self) -> Sequence[ProgramQuery]:
        """Return the queries by key that scenarios about keys need; none if some are live."""


def rows_between(
    moments: Ints, after: int, until: int, span_ms: int, start_ms: int
) -> tuple[Ints, Ints]:
    """Return the rows of the moments (after, until], in order, and their event times (ms).

    `moments` int64[n]: milliseconds into the recording, ascending and less than `span_ms`.
    `start_ms`: event time of the first moment.
    """
    rows, times = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for loop in range((after + 1) // span_ms, until // span_ms + 1):
        begin = loop * span_ms
        first, stop = np.searchsorted(moments, [after - begin, until - begin], side="right")
        rows.append(np.arange(first, stop))
        times.append(moments[first:stop] + start_ms + begin)
    return np.concatenate(rows), np.concatenate(times)


def slices_by(numbers: Ints, batch: pa.RecordBatch) -> dict[int, pa.RecordBatch]:
    """Return the slice of a batch for each number; `numbers`: that of each row, ascending."""
    known, starts = np.unique(numbers, return_index=True)
    stops = [*starts[1:], len(numbers)] if len(numbers) else []
    return {
        int(number): batch.slice(int(start), int(stop - start))
        for number, start, stop in zip(known, starts, stops, strict=True)
    }
