"""Reading ranges of a topic in a worker, as entries of the log that split nodes route.

An entry is up to `CHUNK` messages of one partition; its position is `<partition>-<offset>`.
"""

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from controlplane.wire.dead_letters import DeadLetter, Reason
from controlplane.wire.errors import LogUnavailable
from controlplane.wire.log.kafka_reader import unavailable
from controlplane.wire.log.values import MAX_SEQUENCE, NO_TIME, Block, LogEntry
from controlplane.wire.records.record_codec import block_times, encode_block, times_ms
from controlplane.wire.schema import StreamSchema
from controlplane.wire.topics.clients import consumer_of, ends_of
from controlplane.wire.topics.cut import PartitionPosition
from controlplane.wire.topics.source import TopicSource
from workers.pipeline.sources.topic.decode import CHUNK, Decoded, decode
from workers.pipeline.sources.topic.messages import Fetched, letter_data
from workers.pipeline.sources.topic.plan import PartitionRange, TopicPart
from workers.pipeline.split_nodes.projection import DeadLetterBuffer

_FETCH: Final = 5_000
# Messages of a partition that another process may read now: beyond these it is given back.
_AHEAD: Final = 5_000
# So long the brokers may give nothing before the attempt at the batch fails.
_SILENT_S: Final = 60.0
_DELETED: Final = {
    KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - the client's own errors begin so
    KafkaError.OFFSET_OUT_OF_RANGE,
}


class Range(NamedTuple):
    """The messages of a range; `lost`: the offset before which the broker has deleted some."""

    messages: list[Any]
    lost: int | None


@dataclass
class TopicReader:
    """One consumer of one topic in one process; consecutive ranges need no new request.

    By assigned partition: `_done`: the offset up to which messages were returned; `_next`: up to
    which they came; `_ahead`: those between. `_lost`: the first offset that the broker still has,
    of partitions of the present ranges.
    """

    source: TopicSource
    group: str
    _done: dict[int, int] = field(default_factory=dict)
    _next: dict[int, int] = field(default_factory=dict)
    _ahead: dict[int, deque[Any]] = field(default_factory=dict)
    _lost: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._consumer = consumer_of(self.source, self.group)

    def read(self, ranges: Sequence[PartitionRange]) -> dict[int, Range]:
        """Return the messages of ranges by partition.

        Raises `LogUnavailable` if the brokers give nothing for a minute.
        """
        stops = {part.partition: part.stop for part in ranges}
        self._lost.clear()
        self._assign(ranges)
        deadline = time.monotonic() + _SILENT_S
        while waiting := [n for n, stop in stops.items() if self._next.get(n, stop) < stop]:
            for message in self._consumer.consume(_FETCH, timeout=0.5):
                self._take(message)
                deadline = time.monotonic() + _SILENT_S
            if time.monotonic() > deadline:
                self._forget(list(self._next))
                text = f"partitions {waiting} of the topic {self.source.topic} give no message"
                raise LogUnavailable(text)
        result = {n: Range(self._taken(n, stop), self._lost.get(n)) for n, stop in stops.items()}
        self._forget([n for n, ahead in self._ahead.items() if len(ahead) > _AHEAD])
        return result

    def _taken(self, number: int, stop: int) -> list[Any]:
        ahead, result = self._ahead.get(number, deque[Any]()), []
        while ahead and ahead[0].offset() < stop:
            result.append(ahead.popleft())
        if number in self._done:
            self._done[number] = stop
        return result

    def _assign(self, ranges: Sequence[PartitionRange]) -> None:
        """Let the consumer continue at the starts of ranges."""
        moved = [part for part in ranges if self._done.get(part.partition) != part.start]
        self._forget([part.partition for part in moved if part.partition in self._next])
        if moved:
            self._start({part.partition: part.start for part in moved})

    def _start(self, starts: Mapping[int, int]) -> None:
        topic = self.source.topic
        self._consumer.incremental_assign(
            [TopicPartition(topic, number, start) for number, start in starts.items()]
        )
        self._next |= starts
        self._done |= starts
        self._ahead |= {number: deque() for number in starts}

    def _forget(self, partitions: Sequence[int]) -> None:
        if partitions:
            topic = self.source.topic
            self._consumer.incremental_unassign([TopicPartition(topic, n) for n in partitions])
        for number in partitions:
            del self._next[number], self._done[number], self._ahead[number]

    def _take(self, message: "Message[Any, Any]") -> None:
        number, error = message.partition(), message.error()
        if number is None or number not in self._next:
            return
        if error is None:
            self._ahead[number].append(message)
            self._next[number] = (message.offset() or 0) + 1
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - as above
            # The last offsets may be no messages, but marks of transactions.
            self._next[number] = max(self._next[number], message.offset() or 0)
        elif error.code() in _DELETED:
            self._restart(number)

    def _restart(self, number: int) -> None:
        """Continue behind what the broker has deleted since the batch was planned."""
        first, _ = ends_of(self._consumer, self.source.topic, [number])[number]
        position = self._next[number]
        self._forget([number])
        if first > position:
            self._start({number: first})
            self._lost[number] = first
        else:
            # The topic was created again: it has nothing of the range.
            self._lost[number] = MAX_SEQUENCE


@cache
def reader_of(source: TopicSource, group: str) -> TopicReader:
    """Return this process's reader of a topic."""
    return TopicReader(source, group)


@dataclass
class TopicBatch:
    """What one split node read of topics: entries by stream, and its part of the cuts after it."""

    entries: dict[int, list[LogEntry]] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)


def read_part(
    part: TopicPart,
    source: TopicSource,
    schema: StreamSchema,
    clock_ms: int,
    dead: DeadLetterBuffer,
    *,
    is_needed: bool = True,
) -> TopicBatch:
    """Return the entries of a part, and the positions after it; adds other messages to `dead`.

    `clock_ms`: when the batch was planned; no message is taken for newer. `is_needed`: whether
    anything reads the stream; otherwise its messages are only counted.
    """
    entries: list[LogEntry] = []
    positions: dict[int, PartitionPosition] = {}
    size = count = 0
    try:
        read = reader_of(source, part.group).read(part.ranges) if is_needed else {}
    except KafkaException as error:
        raise unavailable(error) from error
    for item in part.ranges:
        if not is_needed:
            entries.append(_counted(item, clock_ms))
            continue
        messages, lost = read[item.partition]
        chunks = _PartitionChunks(part, source, schema, clock_ms, dead, item.before)
        if lost is not None:
            _count_lost(part.stream, item, min(lost, item.stop), dead)
        entries += chunks.entries(item.partition, messages)
        positions[item.partition] = chunks.position
        size, count = size + chunks.size, count + len(messages)
    if part.is_marked and not entries:
        entries.append(_marking(part, schema))
    report = {"cut": part.cut, "partitions": {n: list(p) for n, p in positions.items()}}
    return TopicBatch({part.stream: entries}, report | {"bytes": size, "messages": count})


def _counted(item: PartitionRange, clock_ms: int) -> LogEntry:
    position, count = f"{item.partition}-{item.start}", item.stop - item.start
    return LogEntry(position, count, b"", NO_TIME, None, clock_ms)


def _marking(part: TopicPart, schema: StreamSchema) -> LogEntry:
    """Return an entry without records that advances the watermark of the stream at all nodes."""
    empty = pa.RecordBatch.from_arrays(
        [pa.nulls(0, column.type) for column in schema.arrow], schema=schema.arrow
    )
    mark_ms = part.mark_ms
    assert mark_ms is not None
    return LogEntry("0-0", 0, encode_block(empty, schema.event_time), mark_ms, mark_ms)


def _count_lost(stream: int, item: PartitionRange, stop: int, dead: DeadLetterBuffer) -> None:
    """Count the messages from the start of a range up to `stop`, which the broker has deleted."""
    text = f"the broker has deleted the offsets {item.start} to {stop - 1} before they were read"
    position, lost = f"{item.partition}-{item.start}", stop - item.start
    dead.add(DeadLetter(stream, position, 0, Reason.LOST, text, b"", lost))


@dataclass
class _PartitionChunks:
    """The messages of one partition in one batch, in chunks; `position`: after the newest."""

    part: TopicPart
    source: TopicSource
    schema: StreamSchema
    clock_ms: int
    dead: DeadLetterBuffer
    position: PartitionPosition
    size: int = 0

    def entries(self, partition: int, messages: Sequence[Any]) -> Iterable[LogEntry]:
        """Yield an entry for each chunk with records."""
        kept = [message for message in messages if message.value() is not None]
        self.dead.count(self.part.stream, Reason.TOMBSTONE, len(messages) - len(kept))
        for first in range(0, len(kept), CHUNK):
            chunk = _fetched(partition, kept[first : first + CHUNK], self.clock_ms)
            self.size += sum(map(len, chunk.values))
            appended_ms = max(chunk.times_ms)
            self.position = self.position._replace(
                appended_ms=max(appended_ms, self.position.appended_ms)
            )
            records = self._records(chunk, decode(chunk, self.source, self.schema))
            if records.num_rows:
                yield self._entry(chunk, records, appended_ms)

    def _records(self, chunk: Fetched, decoded: Decoded) -> pa.RecordBatch:
        """Return the records that are not dated too far ahead; the others are dead letters."""
        records, places = decoded.records, decoded.places
        self.dead.count(self.part.stream, Reason.CHANGE, decoded.skipped)
        names = [name for name in self.schema.arrow.names if name not in self.source.metadata]
        for index, why in sorted(decoded.faults.items()):
            data = letter_data(chunk, index, self.source, names)
            self._reject(chunk, index, Reason.MESSAGE, why, data)
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
                self._reject(chunk, int(places[row]), Reason.FUTURE, text, data)
            records = records.filter(pa.array(~future))
        return records

    @property
    def _max_future_ms(self) -> int:
        return round(self.schema.max_future_s * 1000)

    def _reject(self, chunk: Fetched, index: int, reason: Reason, why: str, data: bytes) -> None:
        position = f"{chunk.partition}-{chunk.offsets[index]}"
        self.dead.add(DeadLetter(self.part.stream, position, 0, reason, why, data))

    def _entry(self, chunk: Fetched, records: pa.RecordBatch, appended_ms: int) -> LogEntry:
        newest_ms = block_times(records, self.schema, appended_ms).newest_ms
        delay_ms = round(self.schema.watermark_delay_s * 1000)
        block = Block(records.num_rows, b"", newest_ms, self._max_future_ms, delay_ms)
        watermark, _ = self.position.watermark.after(block, appended_ms)
        self.position = self.position.with_watermark(watermark)
        data = encode_block(records, self.schema.event_time)
        mark_ms = self.part.mark_ms
        reached = NO_TIME if mark_ms is None else mark_ms
        position = f"{chunk.partition}-{chunk.offsets[0]}"
        return LogEntry(position, records.num_rows, data, reached, mark_ms, appended_ms)


def _fetched(partition: int, messages: Sequence[Any], clock_ms: int) -> Fetched:
    return Fetched(
        partition,
        [message.offset() for message in messages],
        [message.value() for message in messages],
        [message.key() for message in messages],
        [_time_ms(message, clock_ms) for message in messages],
    )


def _time_ms(message: Any, clock_ms: int) -> int:
    """Return the timestamp of a message, the clock of the batch if it has none or is ahead."""
    kind, ms = message.timestamp()
    return clock_ms if kind == TIMESTAMP_NOT_AVAILABLE else max(0, min(int(ms), clock_ms))
