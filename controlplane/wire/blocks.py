"""Blocks: the records of one append to one stream, as Arrow IPC bytes.

One block of up to a thousand records is an order of magnitude cheaper to write and to read than
one JSON row per record; the schema is the same for all streams of a cluster.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from controlplane.wire.errors import BadBlock
from controlplane.wire.language.tree import Kind

# ts: event time; x, y: metres on the map; speed: cm/s, integer so that sums are exact.
SCHEMA: Final = pa.schema(
    [
        pa.field("ts", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("car", pa.int32(), nullable=False),
        pa.field("x", pa.int32(), nullable=False),
        pa.field("y", pa.int32(), nullable=False),
        pa.field("speed", pa.int32()),
    ]
)
# What the columns are in the language of queries.
KINDS: Final = {
    "ts": Kind.TIME, "car": Kind.INT, "x": Kind.INT, "y": Kind.INT, "speed": Kind.INT,
}  # fmt: skip
# The columns a query may aggregate.
VALUE_COLUMNS: Final = ("speed", "x", "y")
MAX_RECORDS: Final = 100_000


def newest_event_ms(batch: pa.RecordBatch) -> int:
    """Return the newest event time of a block, in milliseconds."""
    return int(np.asarray(batch.column("ts").cast(pa.int64())).max())


def check_block(stream: int, batch: pa.RecordBatch) -> None:
    """Raise `BadBlock` unless `batch` can be appended to a stream."""
    if not batch.schema.equals(SCHEMA):
        raise BadBlock(
            stream, f"expected schema {_signature(SCHEMA)}, got {_signature(batch.schema)}"
        )
    if not 0 < batch.num_rows <= MAX_RECORDS:
        raise BadBlock(
            stream, f"a block holds 1 to {MAX_RECORDS:,} records, not {batch.num_rows:,}"
        )
    for field in SCHEMA:
        if not field.nullable and batch.column(field.name).null_count:
            raise BadBlock(stream, f"column {field.name!r} must not hold nulls")


def encode_block(batch: pa.RecordBatch) -> bytes:
    """Return the bytes of one block; the schema is known, so only the batch is written."""
    return bytes(batch.serialize())


def decode_block(data: bytes) -> pa.RecordBatch:
    """Return the records of one block that `encode_block` wrote."""
    return pa.ipc.read_record_batch(pa.py_buffer(data), SCHEMA)


def _signature(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
