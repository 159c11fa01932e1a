"""The newest records of streams, as the engine takes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from controlplane.explain.drafts.values import MOST_BYTES, MOST_RECORDS
from controlplane.wire.log.values import NO_TIME, Log, LogEntry
from controlplane.wire.query import Computation
from controlplane.wire.records.record_codec import encode_block
from controlplane.wire.schema import StreamSchema
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.evaluation.records import NO_WATERMARK, Records
from workers.pipeline.exchange.envelope import TIME_COLUMN
from workers.pipeline.routing.compilation import read_columns
from workers.pipeline.sources.browse import RecordsReader
from workers.pipeline.split_nodes.projection import DeadLetterBuffer, Projection

# Blocks of a stream that are read at most, and streams that are read together.
_BLOCKS: Final = 8
_TOGETHER: Final = 16
# Sources that a preview reads at most.
MOST_SOURCES: Final = 8
# No record is dated further ahead than this.
_ALWAYS_MS: Final = 2**52


@dataclass(frozen=True)
class NewestEntries:
    """The newest blocks of streams by id.

    `is_partial`: True if a limit left out streams.
    """

    entries: Mapping[int, Sequence[LogEntry]]
    is_partial: bool


@dataclass(frozen=True)
class NewestRecords:
    """The newest records of streams; `rejected`: records that do not match their schema."""

    parts: Sequence[Records]
    rejected: int
    is_partial: bool


def read_newest(log: Log, streams: Sequence[int]) -> NewestEntries:
    """Return the newest blocks of streams, up to the limit of bytes.

    Raises `LogUnavailable`.
    """
    entries: dict[int, Sequence[LogEntry]] = {}
    size = 0
    for first in range(0, len(streams), _TOGETHER):
        if size > MOST_BYTES:
            return NewestEntries(entries, is_partial=True)
        known = log.newest_entries(streams[first : first + _TOGETHER], _BLOCKS)
        entries |= known
        size += sum(len(entry.block) for rows in known.values() for entry in rows)
    return NewestEntries(entries, is_partial=False)


def with_sources(
    newest: NewestEntries, sources: Mapping[int, RecordsReader], schemas: Mapping[int, StreamSchema]
) -> NewestEntries:
    """Return newest blocks with the records of sources, which no watermark makes late."""
    entries = dict(newest.entries)
    for stream, read in sources.items():
        decoded = [item.chunk.decoded.records for item in read()]
        own = [entry_of(records, schemas[stream]) for records in decoded if records.num_rows]
        if own:
            entries[stream] = [*entries.get(stream, ()), *own]
    return NewestEntries(entries, newest.is_partial)


def entry_of(records: Any, schema: StreamSchema) -> LogEntry:
    """Return records of a source as an entry of the log."""
    data = encode_block(records, schema.event_time)
    return LogEntry("0-0", records.num_rows, data, NO_TIME, None, _ALWAYS_MS)


def newest_records(
    newest: NewestEntries, schemas: Mapping[int, StreamSchema], computation: Computation
) -> NewestRecords:
    """Return the records of the blocks that a computation reads, as many of each stream at most."""
    quota = max(1, MOST_RECORDS // max(1, len(schemas)))
    parts, rejected, is_partial = [], 0, newest.is_partial
    for stream, entries in newest.entries.items():
        dead = DeadLetterBuffer()
        columns = tuple(sorted(read_columns(computation, stream)))
        records = records_of(Projection(stream, schemas[stream], columns), entries, dead)
        rejected += sum(sum(reasons.values()) for reasons in dead.counts.values())
        is_partial = is_partial or len(records) > quota
        parts.append(records.part(max(0, len(records) - quota), len(records)))
    return NewestRecords([part for part in parts if len(part)], rejected, is_partial)


def records_of(
    projection: Projection, entries: Sequence[LogEntry], dead: DeadLetterBuffer
) -> Records:
    """Return the correct records of the blocks of a stream."""
    projected = projection.of(entries, dead)
    watermarks = [NO_WATERMARK if entry.mark_ms is None else entry.mark_ms for entry in entries]
    mark_ms = np.repeat(np.array(watermarks, np.int64), projected.lengths)
    table: Any = pa.Table.from_batches([projected.records])
    if projected.good is not None:
        table, mark_ms = table.filter(pa.array(projected.good)), mark_ms[projected.good]
    count = len(mark_ms)
    return Records(
        columns=table.drop_columns([TIME_COLUMN]).combine_chunks(),
        ts_ms=np.asarray(table[TIME_COLUMN]),
        stream=np.full(count, projection.stream, np.int64),
        mark_ms=mark_ms,
        streams=frozenset([projection.stream] if count else []),
        event_time=projected.event_time,
    )
