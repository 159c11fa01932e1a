"""What a taxi's report is: the schema of the demo's streams."""

from typing import Final

from controlplane.wire.schema import ColumnSpec, StreamSchema
from workers.demo.program import MAX_FUTURE_S

# ts: when the taxi was there; x, y: metres on the map; speed: cm/s, whole so that sums are exact.
REPORT: Final = StreamSchema(
    (
        ColumnSpec("ts", "timestamp(ms)", nullable=False),
        ColumnSpec("car", "int32", nullable=False),
        ColumnSpec("x", "int32", nullable=False),
        ColumnSpec("y", "int32", nullable=False),
        ColumnSpec("speed", "int32"),
    ),
    event_time="ts",
    max_future_s=MAX_FUTURE_S,
)
