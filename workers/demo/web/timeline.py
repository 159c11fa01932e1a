"""The hours played in a loop without end: the requests between two moments.

A moment is a number of milliseconds since the first loop began; event time grows over all loops.
"""

import numpy as np
import pyarrow as pa

from workers.demo.web.recording import SCHEMA, SPAN_MS, START_MS, TIME, Recording


def requests_between(recording: Recording, after: int, until: int) -> dict[str, pa.RecordBatch]:
    """Return the requests of the moments (after, until] by stream, in order of time."""
    rows, times = _rows(recording, after, until)
    directory = recording.directory[rows]
    order = np.argsort(directory, kind="stable")
    rows, times, directory = rows[order], times[order], directory[order]
    columns = recording.columns.take(pa.array(rows)).combine_chunks()
    arrays = {TIME: pa.array(times, SCHEMA.field(TIME).type)}
    arrays |= {name: columns[name].combine_chunks() for name in columns.column_names}
    batch = pa.RecordBatch.from_arrays([arrays[name] for name in SCHEMA.names], schema=SCHEMA)
    numbers, starts = np.unique(directory, return_index=True)
    stops = [*starts[1:], len(rows)] if len(rows) else []
    return {
        recording.directories[number].name: batch.slice(int(start), int(stop - start))
        for number, start, stop in zip(numbers.tolist(), starts, stops, strict=True)
    }


def _rows(recording: Recording, after: int, until: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the requests between two moments, and their event times (ms)."""
    rows, times = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for loop in range((after + 1) // SPAN_MS, until // SPAN_MS + 1):
        begin = loop * SPAN_MS
        first, stop = np.searchsorted(recording.at, [after - begin, until - begin], side="right")
        rows.append(np.arange(first, stop))
        times.append(recording.at[first:stop] + START_MS + begin)
    return np.concatenate(rows), np.concatenate(times)
