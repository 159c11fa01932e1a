"""The recorded hours as arrays: the streams and their requests."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from controlplane.wire.schema import ColumnSpec, StreamSchema
from workers.demo.program import MAX_FUTURE_S

Int64s = NDArray[np.int64]

DATA: Final = Path(__file__).parent / "data"
REQUESTS: Final = "requests.parquet"

# 1995-08-01T06:00Z: 2 o'clock in the night at the server. The hours grow busier to their end.
START_MS: Final = 807_256_800_000
SPAN_MS: Final = 8 * 3_600_000
TIME: Final = "time"
REQUEST: Final = StreamSchema(
    (
        ColumnSpec(TIME, "timestamp(ms)", nullable=False),
        ColumnSpec("url", "string", nullable=False),
        ColumnSpec("host", "string", nullable=False),
        ColumnSpec("status", "int16", nullable=False),
        # Unknown where nothing was sent.
        ColumnSpec("bytes", "uint32"),
        ColumnSpec("cached", "bool", nullable=False),
    ),
    event_time=TIME,
    max_future_s=MAX_FUTURE_S,
)
SCHEMA: Final = REQUEST.arrow


@dataclass(frozen=True)
class Directory:
    """A directory of the server: its name, and its requests in the recorded hours."""

    name: str
    requests: int

    def declaration(self, speed: float) -> dict[str, Any]:
        """Return the stream as it is registered if the hours pass `speed` times as fast."""
        return {
            "name": self.name,
            "title": f"Requests to /{self.name}",
            "schema": REQUEST.to_json(),
            "declared_rate": round(self.requests * 1000 / SPAN_MS * speed, 4),
        }


@dataclass(frozen=True, eq=False)
class WebRecording:
    """The requests in order of time.

    `at`: milliseconds into the recording, int64[n]; `directory`: number in `directories`, int64[n];
    `columns`: the columns of `SCHEMA` but the time.
    """

    directories: tuple[Directory, ...]
    at: Int64s
    directory: Int64s
    columns: pa.Table


def load_recording(folder: Path = DATA) -> WebRecording:
    """Read the hours that `benchmarks.demo_data.web` cut out; the busiest directory comes first."""
    table: Any = pq.read_table(folder / REQUESTS)
    counted: Any = pc.value_counts(table["directory"].combine_chunks()).to_pylist()
    ranked = sorted(counted, key=lambda row: (-row["counts"], row["values"]))
    directories = tuple(Directory(row["values"], row["counts"]) for row in ranked)
    numbers = {item.name: number for number, item in enumerate(directories)}
    directory = np.array([numbers[name] for name in table["directory"].to_pylist()])
    offset = np.asarray(table[TIME].cast(pa.int64())) - START_MS
    return WebRecording(directories, offset, directory, table.select(SCHEMA.names[1:]))
