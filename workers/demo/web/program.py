"""The demonstration `web`: each directory of the server is a stream, its queries stay."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from workers.demo.loops import rows_between, slices_by
from workers.demo.program import Wanted
from workers.demo.web.queries import PREFIX, long_lived
from workers.demo.web.recording import SCHEMA, SPAN_MS, START_MS, TIME, Recording, load_recording


class Web:
    """The recorded hours, replayed `speed` times as fast."""

    slug = "web"
    prefixes: Sequence[str] = (PREFIX,)
    late_nodes: Sequence[int] = ()

    def __init__(self, speed: float) -> None:
        self._recording = load_recording()
        self._speed = speed
        self._queries = long_lived(self._recording.directories)

    def declarations(self) -> list[dict[str, Any]]:
        """Return one stream per directory."""
        return [directory.declaration(self._speed) for directory in self._recording.directories]

    def records_between(self, after: int, until: int) -> dict[str, pa.RecordBatch]:
        """Return the requests of the moments (after, until] by directory."""
        return requests_between(self._recording, after, until)

    def queries_at(self, moment: int) -> Sequence[Wanted]:
        """Return the queries, which are the same at all times."""
        return self._queries


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
