"""A recording played in a loop without end.

A moment is a number of milliseconds since the first loop began; it grows over all loops, and so
does event time, so that no window ever sees time step back.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]


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
