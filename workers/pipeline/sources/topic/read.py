"""Reading ranges of a topic in a worker.

A chunk is up to `CHUNK` messages of one partition.
"""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final, NamedTuple

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from controlplane.wire.errors import SourceUnavailable
from controlplane.wire.log.values import MAX_SEQUENCE
from controlplane.wire.schema import StreamSchema
from controlplane.wire.topics.clients import consumer_of, ends_of, unavailable
from controlplane.wire.topics.source import TopicSource
from workers.pipeline.sources.entries import Chunk, LostRecords, RangeRecords
from workers.pipeline.sources.plan import PartitionRange, SourceRanges
from workers.pipeline.sources.topic.decode import CHUNK, decode
from workers.pipeline.sources.topic.messages import Fetched, letter_data

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

        Raises `SourceUnavailable` if the brokers give nothing for a minute.
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
                raise SourceUnavailable(text)
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


def read_ranges(
    part: SourceRanges, source: TopicSource, schema: StreamSchema, clock_ms: int
) -> Iterator[RangeRecords]:
    """Yield what is read of each range of a part, in order."""
    try:
        read = reader_of(source, part.group).read(part.ranges)
    except KafkaException as error:
        raise unavailable(error) from error
    for item in part.ranges:
        messages, lost = read[item.partition]
        kept = [message for message in messages if message.value() is not None]
        losses = [] if lost is None else [_loss(item, min(lost, item.stop))]
        chunks = _chunks(item.partition, kept, source, schema, clock_ms)
        yield RangeRecords(item, chunks, len(messages), len(messages) - len(kept), losses)


def _loss(item: PartitionRange, stop: int) -> LostRecords:
    """Return the messages from the start of a range up to `stop`, which the broker has deleted."""
    text = f"the broker has deleted the offsets {item.start} to {stop - 1} before they were read"
    return LostRecords(item.start, stop - item.start, text)


def _chunks(
    partition: int,
    messages: Sequence[Any],
    source: TopicSource,
    schema: StreamSchema,
    clock_ms: int,
) -> Iterator[Chunk]:
    names = [name for name in schema.arrow.names if name not in source.metadata]
    for first in range(0, len(messages), CHUNK):
        own = _fetched(partition, messages[first : first + CHUNK], clock_ms)
        yield Chunk(
            own.offsets, own.times_ms, sum(map(len, own.values)), decode(own, source, schema),
            partial(_letter, own, source, names),
        )  # fmt: skip


def _letter(chunk: Fetched, source: TopicSource, names: Sequence[str], index: int) -> bytes:
    return letter_data(chunk, index, source, names)


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
