"""Envelopes: the records from a split node to a node in one batch, each record once.

A row per record would cost a Python object each on both sides of the shuffle. An envelope is one
binary value: a JSON head with the stream of each run of records and the columns, and one Arrow
record batch with all of them. Streams with other columns have other envelopes, so a node gets
several of one split node; the records of one stream are in one of them. A row from a split node to
a node has all its envelopes and the header of the batch. Spark passes frames of pandas; a process
without them does not load it.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from controlplane.wire.attempts import FAILURES
from controlplane.wire.log.values import NO_TIME
from controlplane.wire.records.record_codec import descriptor_of, parse_descriptor
from workers.pipeline.engine.evaluation.records import BlockRun, Extras, Records
from workers.pipeline.engine.storage.idle_streams import LogTimes
from workers.pipeline.spark.connections import task_failures
from workers.pipeline.spark.partition_keys import NodePartitionKeys

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "nk": pa.int32(),
    "head": pa.string(),
    "payload": pa.binary(),
}
ROUTED: Final = pa.schema(_COLUMNS)
ROUTED_DDL: Final = "nk int, head string, payload binary"
_HEAD: Final = struct.Struct("<I")
# The fields of an envelope with a value for each run, in the order of its head.
_RUNS: Final = ("streams", "appended_ms", "lengths", "newest_ms", "marks_ms")
# The column of event times; no column of a stream has such a name.
TIME_COLUMN: Final = "@ts"
# From values Arrow would make it with the help of pandas, which not every process has.
EMPTY: Final = pa.RecordBatch.from_arrays(
    [pa.nulls(0, pa.int64())], schema=pa.schema([pa.field(TIME_COLUMN, pa.int64())])
)


@dataclass(frozen=True)
class Envelope:
    """Records of several streams of the same columns for one node.

    Run i is `lengths[i]` records of stream `streams[i]`, appended to the log at
    `appended_ms[i]`; the newest event time of its block is `newest_ms[i]`, of the stream before it
    `marks_ms[i]` (None for none). `records` holds the runs one after the other, its first column
    the event time in ms, which queries read as `event_time`. `extras`: further columns of the
    split node by name. `source`: the report of the split node, in one envelope of each batch;
    `read_ms`: when the newest record that it read in the batch was appended (0: it read nothing).
    """

    streams: Sequence[int] = ()
    appended_ms: Sequence[int] = ()
    lengths: Sequence[int] = ()
    newest_ms: Sequence[int] = ()
    marks_ms: Sequence[int | None] = ()
    records: pa.RecordBatch = field(default_factory=lambda: EMPTY)
    extras: Extras = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)
    event_time: str = ""
    read_ms: int = 0

    def runs(self) -> list[BlockRun]:
        """Return the runs as the engine takes them."""
        parts = zip(self.streams, self.lengths, self.marks_ms, strict=True)
        return [BlockRun(stream, records, mark) for stream, records, mark in parts]

    def encode(self) -> bytes:
        """Return the envelope as bytes."""
        return b"".join(self.parts())

    def parts(self) -> list[Any]:
        """Return the bytes of the envelope in pieces, which `decode` takes joined."""
        runs = [list(getattr(self, name)) for name in _RUNS]
        sizes = {name: values.nbytes for name, values in self.extras.items()}
        columns = descriptor_of(self.records.schema, "").decode() if self.records.num_rows else ""
        row = [*runs, sizes, self.source, self.event_time, self.read_ms, columns]
        head = json.dumps(row, separators=(",", ":")).encode()
        extras = [values.tobytes() for values in self.extras.values()]
        body = self.records.serialize() if self.records.num_rows else b""
        return [_HEAD.pack(len(head)), head, *extras, body]

    @classmethod
    def decode(cls, data: bytes | memoryview) -> "Envelope":
        """Return the envelope that `encode` wrote; its records stay in these bytes."""
        (size,) = _HEAD.unpack_from(data)
        offset = _HEAD.size + size
        *runs, sizes, source, event_time, read_ms, columns = json.loads(
            bytes(data[_HEAD.size : offset])
        )
        extras = {}
        for name, length in sizes.items():
            extras[name] = np.frombuffer(data[offset : offset + length], np.uint64)
            offset += length
        records = EMPTY
        if columns:
            schema = parse_descriptor(columns.encode()).schema
            records = pa.ipc.read_record_batch(pa.py_buffer(memoryview(data)[offset:]), schema)
        fields: dict[str, Any] = dict(zip(_RUNS, runs, strict=True))
        fields |= {"records": records, "extras": extras, "source": source}
        return cls(event_time=event_time, read_ms=read_ms, **fields)

    def slice(self, first: int, stop: int) -> "Envelope":
        """Return the records [first, stop), and the runs without records between them.

        Only the last piece of a run has the newest event time of its block: with it the block is
        complete.
        """
        kept, offset = [], 0
        for run, length in enumerate(self.lengths):
            low, offset = max(offset, first), offset + length
            ends = first < offset <= stop or offset == first == 0
            if min(offset, stop) > low or ends:
                kept.append((run, max(0, min(offset, stop) - low), ends))
        return replace(
            self._of_runs([run for run, _, _ in kept]),
            lengths=[length for _, length, _ in kept],
            newest_ms=[self.newest_ms[run] if ends else NO_TIME for run, _, ends in kept],
            records=self.records.slice(first, stop - first),
            extras={name: values[first:stop] for name, values in self.extras.items()},
        )

    def of_streams(self, streams: Sequence[int]) -> "Envelope":
        """Return the runs of these streams."""
        kept = [run for run, stream in enumerate(self.streams) if stream in streams]
        of_record = np.repeat(np.isin(self.streams, streams), self.lengths)
        return replace(
            self._of_runs(kept),
            records=self.records.filter(pa.array(of_record)),
            extras={name: values[of_record] for name, values in self.extras.items()},
        )

    def _of_runs(self, kept: Sequence[int]) -> "Envelope":
        """Return the descriptions of these runs, with all records."""
        runs: dict[str, Any] = {name: [getattr(self, name)[run] for run in kept] for name in _RUNS}
        return replace(self, **runs)


def pack_envelopes(envelopes: Sequence[Envelope]) -> bytes:
    """Return the envelopes of one split node for one node as bytes."""
    result: list[Any] = []
    for envelope in envelopes:
        parts = envelope.parts()
        result += [_HEAD.pack(sum(memoryview(part).nbytes for part in parts)), *parts]
    return b"".join(result)


def unpack_envelopes(data: bytes) -> list[Envelope]:
    """Return the envelopes that `pack_envelopes` wrote."""
    result, offset, view = [], 0, memoryview(data)
    while offset < len(data):
        (size,) = _HEAD.unpack_from(data, offset)
        offset += _HEAD.size
        result.append(Envelope.decode(view[offset : offset + size]))
        offset += size
    return result


def records_of(envelopes: Sequence[Envelope]) -> list[Records]:
    """Return the records of all envelopes, those with the same columns together."""
    groups: dict[tuple[pa.Schema, str], list[Envelope]] = {}
    for envelope in envelopes:
        if envelope.records.num_rows:
            kind = envelope.records.schema, envelope.event_time
            groups.setdefault(kind, []).append(envelope)
    return [_records(event_time, same) for (_, event_time), same in groups.items()]


def _records(event_time: str, envelopes: Sequence[Envelope]) -> Records:
    columns = pa.Table.from_batches([item.records for item in envelopes]).combine_chunks()
    ts_ms = np.asarray(columns[TIME_COLUMN])
    runs = [run for envelope in envelopes for run in envelope.runs()]
    rest = columns.drop_columns([TIME_COLUMN])
    return Records.of(rest, ts_ms, runs, join_extras(envelopes), event_time)


def join_extras(parts: Sequence[Any]) -> Extras:
    """Return the extra columns of envelopes or stream records; 0 if a part does not have one."""
    names = dict.fromkeys(name for part in parts for name in part.extras)
    return {
        name: np.concatenate(
            [part.extras.get(name, np.zeros(part.records.num_rows, np.uint64)) for part in parts]
        )
        for name in names
    }


def newest_of(envelopes: Sequence[Envelope]) -> Mapping[int, int]:
    """Return the newest event time of each stream in these envelopes."""
    newest: dict[int, int] = {}
    for envelope in envelopes:
        for stream, ms in zip(envelope.streams, envelope.newest_ms, strict=True):
            newest[stream] = max(ms, newest.get(stream, ms))
    return {stream: ms for stream, ms in newest.items() if ms != NO_TIME}


def log_times_of(envelopes: Sequence[Envelope], idle_ms: Mapping[int, int]) -> LogTimes:
    """Return the append times of these envelopes: of the log and of each stream."""
    streams: dict[int, int] = {}
    for envelope in envelopes:
        for stream, ms in zip(envelope.streams, envelope.appended_ms, strict=True):
            streams[stream] = max(ms, streams.get(stream, ms))
    now_ms = max((envelope.read_ms for envelope in envelopes), default=0)
    return LogTimes(max(now_ms, 0, *streams.values()), streams, idle_ms)


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The header of a batch, which each split node sends to every node.

    `export_version`: the version from which tasks export their state in this batch;
    `import_version`: the one from which they did in the batch before; None if none do.
    `clock_ms`: when the batch was planned; `elapsed_ms`: since when the one before was, None for
    the first. `has_backlog`: whether records waited at a node after the batch before. `split`:
    the sender. `nodes`: how many nodes take part in the batch. `republish`: whether the nodes write
    the rows of all open windows again, as Redis has lost them. `attempt`: how often the batch was
    begun, with this time. `delayed`: the streams with unread records at their split nodes, and the
    topics that are not idle by the clock of batches.
    `ladder`: the drop rules of the ladder (`shedding.drops.LadderDrops`), None without. `faults`:
    delay by node (`wire.node_faults`), with the node's index as text.
    """

    batch: int
    version: int
    export_version: int | None
    import_version: int | None
    clock_ms: int
    elapsed_ms: int | None
    has_backlog: bool
    split: int
    nodes: int
    republish: bool = False
    attempt: int = 1
    delayed: tuple[int, ...] = ()
    ladder: Sequence[Any] | None = None
    faults: Mapping[str, int] = field(default_factory=dict)

    def delay_us(self, node: int) -> int:
        """Return the delay of a node per record in microseconds, or `LOST`; 0 without a fault."""
        return self.faults.get(str(node), 0)

    def of_task(self) -> "BatchHeader":
        """Return the header for this process's Spark task.

        The second attempt at a task searches for queries that end its process: an attempt at a
        batch costs the start of a driver, that at a task a second.
        """
        return replace(self, attempt=self.attempt + FAILURES) if task_failures() else self


def to_rows(
    header: BatchHeader, keys: NodePartitionKeys, envelopes: Sequence[Sequence[Envelope]]
) -> pa.RecordBatch:
    """Return one row per node, with the node's grouping key, the header and its envelopes."""
    text = json.dumps(asdict(header), separators=(",", ":"))
    return pa.RecordBatch.from_pydict(
        {
            "nk": keys.keys_of(header.nodes),
            "head": [text] * header.nodes,
            "payload": [pack_envelopes(of_node) for of_node in envelopes],
        },
        schema=ROUTED,
    )


@dataclass(frozen=True)
class NodeInput:
    """What one node gets in one batch: the envelopes in the order of the split nodes."""

    node: int
    header: BatchHeader
    envelopes: list[Envelope]
    bytes: int


def node_input(node: int, frames: "Sequence[pd.DataFrame]") -> NodeInput:
    """Return the input of a node; Spark promises no order within a group."""
    import pandas as pd  # noqa: PLC0415 - 46 MB in each process that only knows this module

    rows = pd.concat(frames) if len(frames) > 1 else frames[0]
    pairs = [
        (BatchHeader(**json.loads(header)), bytes(payload))
        for header, payload in zip(rows["head"], rows["payload"], strict=True)
    ]
    pairs.sort(key=lambda pair: pair[0].split)
    envelopes = [envelope for _, payload in pairs for envelope in unpack_envelopes(payload)]
    return NodeInput(node, pairs[0][0], envelopes, sum(len(payload) for _, payload in pairs))
