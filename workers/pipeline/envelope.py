"""Envelopes: what a split node hands to a node in one batch, each record once.

A row per record would cost a Python object each on both sides of the shuffle. An envelope is one
binary value: a JSON head that says which run of records belongs to which stream, and one Arrow
record batch with all of them.
"""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from controlplane.wire.blocks import SCHEMA

_HEAD: Final = struct.Struct("<I")
EMPTY: Final = pa.RecordBatch.from_pylist([], schema=SCHEMA)


@dataclass(frozen=True)
class Envelope:
    """Records of several streams for one node.

    Run i is `lengths[i]` records of stream `streams[i]`, appended to the log at
    `appended_ms[i]`; `records` holds the runs one behind the other. `source` is what the split
    node has to report about its own work, in one envelope of each batch.
    """

    streams: Sequence[int] = ()
    appended_ms: Sequence[int] = ()
    lengths: Sequence[int] = ()
    records: pa.RecordBatch = field(default_factory=lambda: EMPTY)
    source: dict[str, Any] = field(default_factory=dict)

    def stream_of_record(self) -> NDArray[np.int64]:
        """Return the stream of every record."""
        return np.repeat(np.asarray(self.streams, np.int64), np.asarray(self.lengths, np.int64))

    def encode(self) -> bytes:
        """Return the envelope as bytes."""
        head = json.dumps(
            [list(self.streams), list(self.appended_ms), list(self.lengths), self.source],
            separators=(",", ":"),
        ).encode()
        body = self.records.serialize() if self.records.num_rows else b""
        return b"".join((_HEAD.pack(len(head)), head, body))

    @classmethod
    def decode(cls, data: bytes) -> "Envelope":
        """Return the envelope that `encode` wrote."""
        (size,) = _HEAD.unpack_from(data)
        body = _HEAD.size + size
        streams, appended_ms, lengths, source = json.loads(data[_HEAD.size : body])
        records = EMPTY
        if body < len(data):
            records = pa.ipc.read_record_batch(pa.py_buffer(memoryview(data)[body:]), SCHEMA)
        return cls(streams, appended_ms, lengths, records, source)
