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

import pyarrow as pa

from controlplane.wire.blocks import SCHEMA
from workers.pipeline.engine.records import Records, Run

_HEAD: Final = struct.Struct("<I")
EMPTY: Final = pa.RecordBatch.from_pylist([], schema=SCHEMA)


@dataclass(frozen=True)
class Envelope:
    """Records of several streams for one node.

    Run i is `lengths[i]` records of stream `streams[i]`, appended to the log at
    `appended_ms[i]`; the newest event time of its block is `newest_ms[i]`, of the stream before it
    `marks_ms[i]` (None for none). `records` holds the runs one behind the other. `source` is what
    the split node has to report about its own work, in one envelope of each batch.
    """

    streams: Sequence[int] = ()
    appended_ms: Sequence[int] = ()
    lengths: Sequence[int] = ()
    newest_ms: Sequence[int] = ()
    marks_ms: Sequence[int | None] = ()
    records: pa.RecordBatch = field(default_factory=lambda: EMPTY)
    source: dict[str, Any] = field(default_factory=dict)

    def runs(self) -> list[Run]:
        """Return the runs as the engine takes them."""
        parts = zip(self.streams, self.lengths, self.marks_ms, strict=True)
        return [Run(stream, records, mark) for stream, records, mark in parts]

    def encode(self) -> bytes:
        """Return the envelope as bytes."""
        runs = (self.streams, self.appended_ms, self.lengths, self.newest_ms, self.marks_ms)
        head = json.dumps([*map(list, runs), self.source], separators=(",", ":")).encode()
        body = self.records.serialize() if self.records.num_rows else b""
        return b"".join((_HEAD.pack(len(head)), head, body))

    @classmethod
    def decode(cls, data: bytes) -> "Envelope":
        """Return the envelope that `encode` wrote."""
        (size,) = _HEAD.unpack_from(data)
        body = _HEAD.size + size
        streams, appended, lengths, newest, marks, source = json.loads(data[_HEAD.size : body])
        records = EMPTY
        if body < len(data):
            records = pa.ipc.read_record_batch(pa.py_buffer(memoryview(data)[body:]), SCHEMA)
        return cls(streams, appended, lengths, newest, marks, records, source)


def records_of(envelopes: Sequence[Envelope]) -> Records | None:
    """Return the records of all envelopes together, None where there are none."""
    filled = [envelope for envelope in envelopes if envelope.records.num_rows]
    if not filled:
        return None
    columns = pa.Table.from_batches([envelope.records for envelope in filled]).combine_chunks()
    return Records.of(columns, [run for envelope in filled for run in envelope.runs()])


def newest_of(envelopes: Sequence[Envelope]) -> dict[int, int]:
    """Return the newest event time of each stream in these envelopes."""
    newest: dict[int, int] = {}
    for envelope in envelopes:
        for stream, ms in zip(envelope.streams, envelope.newest_ms, strict=True):
            newest[stream] = max(ms, newest.get(stream, ms))
    return newest
