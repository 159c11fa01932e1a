"""Envelopes: what a split node hands to a node in one batch, each record once.

A row per record would cost a Python object each on both sides of the shuffle. An envelope is one
binary value: a JSON head that says which run of records belongs to which stream, and one Arrow
record batch with all of them.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from controlplane.wire.blocks import SCHEMA
from workers.pipeline.engine.records import Extras, Records, Run

_HEAD: Final = struct.Struct("<I")
# From values Arrow would make it with the help of pandas, which not every process has.
EMPTY: Final = pa.RecordBatch.from_arrays([pa.nulls(0, one.type) for one in SCHEMA], schema=SCHEMA)


@dataclass(frozen=True)
class Envelope:
    """Records of several streams for one node.

    Run i is `lengths[i]` records of stream `streams[i]`, appended to the log at
    `appended_ms[i]`; the newest event time of its block is `newest_ms[i]`, of the stream before it
    `marks_ms[i]` (None for none). `records` holds the runs one behind the other; `extras` what the
    split node says of each record, by name. `source` is what the split node has to report about
    its own work, in one envelope of each batch.
    """

    streams: Sequence[int] = ()
    appended_ms: Sequence[int] = ()
    lengths: Sequence[int] = ()
    newest_ms: Sequence[int] = ()
    marks_ms: Sequence[int | None] = ()
    records: pa.RecordBatch = field(default_factory=lambda: EMPTY)
    extras: Extras = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)

    def runs(self) -> list[Run]:
        """Return the runs as the engine takes them."""
        parts = zip(self.streams, self.lengths, self.marks_ms, strict=True)
        return [Run(stream, records, mark) for stream, records, mark in parts]

    def encode(self) -> bytes:
        """Return the envelope as bytes."""
        runs = (self.streams, self.appended_ms, self.lengths, self.newest_ms, self.marks_ms)
        sizes = {name: values.nbytes for name, values in self.extras.items()}
        row = [*map(list, runs), sizes, self.source]
        head = json.dumps(row, separators=(",", ":")).encode()
        extras = [values.tobytes() for values in self.extras.values()]
        body = self.records.serialize() if self.records.num_rows else b""
        return b"".join((_HEAD.pack(len(head)), head, *extras, body))

    @classmethod
    def decode(cls, data: bytes) -> "Envelope":
        """Return the envelope that `encode` wrote."""
        (size,) = _HEAD.unpack_from(data)
        at = _HEAD.size + size
        streams, appended, lengths, newest, marks, sizes, source = json.loads(data[_HEAD.size : at])
        extras = {}
        for name, length in sizes.items():
            extras[name] = np.frombuffer(data[at : at + length], np.uint64)
            at += length
        records = EMPTY
        if at < len(data):
            records = pa.ipc.read_record_batch(pa.py_buffer(memoryview(data)[at:]), SCHEMA)
        return cls(streams, appended, lengths, newest, marks, records, extras, source)

    def slice(self, first: int, past: int) -> "Envelope":
        """Return the records [first, past), and the runs without records between them.

        A run that is cut says the newest event time of its block in its last piece alone: only
        then is the block known in whole.
        """
        kept, at = [], 0
        for run, length in enumerate(self.lengths):
            low, at = max(at, first), at + length
            ends = first < at <= past or at == first == 0
            if min(at, past) > low or ends:
                kept.append((run, max(0, min(at, past) - low), ends))
        return replace(
            self,
            streams=[self.streams[run] for run, _, _ in kept],
            appended_ms=[self.appended_ms[run] for run, _, _ in kept],
            lengths=[length for _, length, _ in kept],
            newest_ms=[self.newest_ms[run] if ends else _NOTHING for run, _, ends in kept],
            marks_ms=[self.marks_ms[run] for run, _, _ in kept],
            records=self.records.slice(first, past - first),
            extras={name: values[first:past] for name, values in self.extras.items()},
        )

    def of_streams(self, streams: Sequence[int]) -> "Envelope":
        """Return the runs of these streams alone."""
        kept = [run for run, stream in enumerate(self.streams) if stream in streams]
        of_record = np.repeat(np.isin(self.streams, streams), self.lengths)
        return replace(
            self,
            streams=[self.streams[run] for run in kept],
            appended_ms=[self.appended_ms[run] for run in kept],
            lengths=[self.lengths[run] for run in kept],
            newest_ms=[self.newest_ms[run] for run in kept],
            marks_ms=[self.marks_ms[run] for run in kept],
            records=self.records.filter(pa.array(of_record)),
            extras={name: values[of_record] for name, values in self.extras.items()},
        )


# An event time before every other.
_NOTHING: Final = -(2**62)


def records_of(envelopes: Sequence[Envelope]) -> Records | None:
    """Return the records of all envelopes together, None where there are none."""
    filled = [envelope for envelope in envelopes if envelope.records.num_rows]
    if not filled:
        return None
    columns = pa.Table.from_batches([envelope.records for envelope in filled]).combine_chunks()
    runs = [run for envelope in filled for run in envelope.runs()]
    return Records.of(columns, runs, _extras_of(filled))


def _extras_of(envelopes: Sequence[Envelope]) -> Extras:
    """Return what split nodes say of the records; what one does not say is 0."""
    names = dict.fromkeys(name for envelope in envelopes for name in envelope.extras)
    return {
        name: np.concatenate(
            [
                envelope.extras.get(name, np.zeros(envelope.records.num_rows, np.uint64))
                for envelope in envelopes
            ]
        )
        for name in names
    }


def newest_of(envelopes: Sequence[Envelope]) -> Mapping[int, int]:
    """Return the newest event time of each stream in these envelopes."""
    newest: dict[int, int] = {}
    for envelope in envelopes:
        for stream, ms in zip(envelope.streams, envelope.newest_ms, strict=True):
            newest[stream] = max(ms, newest.get(stream, ms))
    return {stream: ms for stream, ms in newest.items() if ms != _NOTHING}
