"""The requests between two moments of the loop."""

import numpy as np
import pyarrow as pa

from workers.demo.loops import rows_between, slices_by
from workers.demo.web.recording import SCHEMA, SPAN_MS, START_MS, TIME, Recording


def requests_between(recording: Recording, after: int, until: int) -> dict[str, pa.RecordBatch]:
    """Return the requests of the moments (after, until] by stream, in order of time."""
    rows, times = rows_between(recording.at, after, until, SPAN_MS, START_MS)
    order = np.argsort(recording.directory[rows], kind="stable")
    rows, times = rows[order], times[order]
    columns = recording.columns.take(rows).combine_chunks()
    arrays = {TIME: pa.array(times, SCHEMA.field(TIME).type)}
    arrays |= {name: columns[name].combine_chunks() for name in columns.column_names}
    batch = pa.RecordBatch.from_arrays([arrays[name] for name in SCHEMA.names], schema=SCHEMA)
    by_number = slices_by(recording.directory[rows], batch)
    return {recording.directories[number].name: part for number, part in by_number.items()}
