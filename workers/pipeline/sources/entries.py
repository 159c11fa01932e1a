"""Ranges of a source as entries of the log that split nodes route.

An entry is a chunk of one partition; its position is `<partition>-<offset>`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from controlplane.wire.dead_letters import DeadLetter, Reason
from controlplane.wire.log.values import NO_TIME, Block, LogEntry
from controlplane.wire.records.record_codec import block_times, encode_block, times_ms
from controlplane.wire.schema import StreamSchema
from controlplane.wire.topics.cut import PartitionPosition
from workers.pipeline.sources.plan import PartitionRange, SourceRanges
from workers.pipeline.split_nodes.projection import DeadLetterBuffer


class Decoded(NamedTuple):
    """Records of a chunk; `places`: the index in the chunk of each, `faults`: by index.

    `skipped`: how many changes are no records, as the source declares.
    """

    records: pa.RecordBatch
    places: np.ndarray[Any, np.dtype[np.int64]]
    faults: Mapping[int, str]
    skipped: int = 0


class Chunk(NamedTuple):
    """Consecutive messages, rows or events of a partition, at least one.

    `times_ms`: when each was there; `size`: bytes; `letter`: what a dead letter keeps of one.
    """

    offsets: Sequence[int]
    times_ms: Sequence[int]
    size: int
    decoded: Decoded
    letter: Callable[[int], bytes]


class LostRecords(NamedTuple):
    """Records of a range that are gone: the first offset, how many, and why."""

    offset: int
    records: int
    why: str


class RangeRecords(NamedTuple):
    """What is read of a range: chunks, how many messages, and how many of them are tombstones."""

    range: PartitionRange
    chunks: Iterable[Chunk]
    messages: int
    tombstones: int = 0
    losses: Sequence[LostRecords] = ()  # complete when the chunks are read


@dataclass
class SourceBatch:
    """What one split node read of a source: entries by stream, and its part of the cut after it."""

    entries: dict[int, list[LogEntry]] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)


def entries_of(
    part: SourceRanges,
    ranges: Iterable[RangeRecords],
    schema: StreamSchema,
    clock_ms: int,
    dead: DeadLetterBuffer,
    *,
    is_needed: bool = True,
) -> SourceBatch:
    """Return the entries of a part, and the positions after it; adds other records to `dead`.

    `clock_ms`: when the batch was planned; no record is taken for newer. `is_needed`: whether
    anything reads the stream; otherwise its records are only counted.
    """
    entries: list[LogEntry] = []
    positions: dict[int, PartitionPosition] = {}
    size = count = 0
    if not is_needed:
        entries = [_counted(item, clock_ms) for item in part.ranges]
        ranges = ()
    for item in ranges:
        partition = item.range.partition
        chunks = _PartitionChunks(part, schema, dead, item.range.before)
        dead.count(part.stream, Reason.TOMBSTONE, item.tombstones)
        entries += chunks.entries(partition, item.chunks)
        for loss in item.losses:
            place = f"{partition}-{loss.offset}"
            dead.add(DeadLetter(part.stream, place, 0, Reason.LOST, loss.why, b"", loss.records))
        positions[partition] = chunks.position
        size, count = size + chunks.size, count + item.messages
    if part.is_marked and not entries:
        entries.append(_marking(part, schema))
    report = {"cut": part.cut, "partitions": {n: list(p) for n, p in positions.items()}}
    return SourceBatch({part.stream: entries}, report | {"bytes": size, "messages": count})


def _counted(item: PartitionRange, clock_ms: int) -> LogEntry:
    position, count = f"{item.partition}-{item.start}", item.stop - item.start
    return LogEntry(position, count, b"", NO_TIME, None, clock_ms)


def _marking(part: SourceRanges, schema: StreamSchema) -> LogEntry:
    """Return an entry without records that advances the watermark of the stream at all nodes."""
    empty = pa.RecordBatch.from_arrays(
        [pa.nulls(0, column.type) for column in schema.arrow], schema=schema.arrow
    )
    mark_ms = part.mark_ms
    assert mark_ms is not None
    return LogEntry("0-0", 0, encode_block(empty, schema.event_time), mark_ms, mark_ms)


@dataclass
class _PartitionChunks:
    """The chunks of one partition in one batch; `position`: after the newest."""

    part: SourceRanges
    schema: StreamSchema
    dead: DeadLetterBuffer
    position: PartitionPosition
    size: int = 0

    def entries(self, partition: int, chunks: Iterable[Chunk]) -> Iterable[LogEntry]:
        """Yield an entry for each chunk with records."""
        for chunk in chunks:
            self.size += chunk.size
            appended_ms = max(chunk.times_ms)
            newest_ms = max(appended_ms, self.position.appended_ms)
            self.position = self.position._replace(appended_ms=newest_ms)
            records = self._records(partition, chunk)
            if records.num_rows:
                yield self._entry(partition, chunk, records, appended_ms)

    def _records(self, partition: int, chunk: Chunk) -> pa.RecordBatch:
        """Return the records that are not dated too far ahead; the others are dead letters."""
        decoded = chunk.decoded
        records, places = decoded.records, decoded.places
        self.dead.count(self.part.stream, Reason.CHANGE, decoded.skipped)
        for index, why in sorted(decoded.faults.items()):
            place = f"{partition}-{chunk.offsets[index]}"
            self._reject(place, Reason.MESSAGE, why, chunk.letter(index))
        if not records.num_rows:
            return records
        times = times_ms(records.column(self.schema.event_time))
        limits = np.array(chunk.times_ms, np.int64)[places] + self._max_future_ms
        future = times > limits
        if future.any():
            name, most = self.schema.event_time, self.schema.max_future_s
            text = f"{name} is further ahead of the message than {most:,.0f} s"
            for row in np.flatnonzero(future).tolist():
                data = encode_block(records.slice(row, 1), name)
                place = f"{partition}-{chunk.offsets[int(places[row])]}"
                self._reject(place, Reason.FUTURE, text, data)
            records = records.filter(pa.array(~future))
        return records

    @property
    def _max_future_ms(self) -> int:
        return round(self.schema.max_future_s * 1000)

    def _reject(self, place: str, reason: Reason, why: str, data: bytes) -> None:
        self.dead.add(DeadLetter(self.part.stream, place, 0, reason, why, data))

    def _entry(
        self, partition: int, chunk: Chunk, records: pa.RecordBatch, appended_ms: int
    ) -> LogEntry:
        newest_ms = block_times(records, self.schema, appended_ms).newest_ms
        delay_ms = round(self.schema.watermark_delay_s * 1000)
        block = Block(records.num_rows, b"", newest_ms, self._max_future_ms, delay_ms)
        watermark, _ = self.position.watermark.after(block, appended_ms)
        self.position = self.position.with_watermark(watermark)
        data = encode_block(records, self.schema.event_time)
        mark_ms = self.part.mark_ms
        reached = NO_TIME if mark_ms is None else mark_ms
        place = f"{partition}-{chunk.offsets[0]}"
        return LogEntry(place, records.num_rows, data, reached, mark_ms, appended_ms)
