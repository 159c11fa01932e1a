"""Reading ranges of a topic in a worker.

A chunk is up to `CHUNK` messages of one partition.
"""

import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
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

from controlplane.child_processes.garbage_collection import without_garbage_collection
from controlplane.wire.errors import SourceUnavailable
from controlplane.wire.log.values import MAX_SEQUENCE
from controlplane.wire.schema import StreamSchema
from controlplane.wire.topics.clients import (
    NoSuchTopic,
    consumer_of,
    ends_of,
    partitions_of,
    unavailable,
)
from controlplane.wire.topics.places import Place, place_of
from controlplane.wire.topics.source import TopicSource
from workers.pipeline.sources.entries import Chunk, LostRecords, RangeRecords
from workers.pipeline.sources.plan import PartitionRange, SourceRanges
from workers.pipeline.sources.topic.decode import CHUNK, decode
from workers.pipeline.sources.topic.messages import Fetched, letter_data

_FETCH: Final = 5_000
# Bytes that came behind the ranges: beyond these, partitions begin again where they were read.
_AHEAD_BYTES: Final = 16 << 20
# Of an object of the client, beside key and value.
_OBJECT_BYTES: Final = 300
# The brokers may have less than is asked for.
_WAIT_S: Final = 0.1
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
    """One consumer of a source in one process; consecutive ranges need no new request.

    By assigned partition: `_done`: the offset up to which messages were returned; `_next`: up to
    which they came; `_ahead`: those between, `_sizes`: their bytes. `_lost`: the first offset that
    the broker still has, of partitions of the present ranges. `_why`: the newest error
    of the client beside the ends of partitions.
    """

    source: TopicSource
    group: str
    _done: dict[Place, int] = field(default_factory=dict)
    _next: dict[Place, int] = field(default_factory=dict)
    _ahead: dict[Place, deque[Any]] = field(default_factory=dict)
    _sizes: dict[Place, int] = field(default_factory=dict)
    _lost: dict[Place, int] = field(default_factory=dict)
    _why: str = ""

    def __post_init__(self) -> None:
        self._consumer = consumer_of(self.source, self.group)

    @without_garbage_collection()
    def read(
        self, ranges: Mapping[Place, tuple[int, int]], *, is_stuck: bool
    ) -> dict[Place, Range]:
        """Return the messages of ranges [start, stop) by partition.

        `is_stuck`: whether partitions that there are no longer are given up. Raises
        `SourceUnavailable` if the brokers give nothing for a minute.
        """
        self._lost.clear()
        self._why = ""
        self._assign({place: start for place, (start, _) in ranges.items()})
        waiting = {place: stop for place, (_, stop) in ranges.items()}
        result: dict[Place, Range] = {}
        deadline, wanted = time.monotonic() + _SILENT_S, 0
        while True:
            for place in [p for p, stop in waiting.items() if self._next.get(p, stop) >= stop]:
                result[place] = self._taken(place, waiting.pop(place))
            self._bound_ahead(waiting)
            if not waiting:
                return result
            left = sum(stop - self._next[place] for place, stop in waiting.items())
            # To ask for more would mean to wait for messages that are not written yet, unless those
            # of other partitions come first.
            wanted = min(_FETCH, max(left, wanted))
            for message in self._consumer.consume(wanted, timeout=_WAIT_S):
                self._take(message)
            after = sum(stop - self._next.get(place, stop) for place, stop in waiting.items())
            if after < left:
                deadline, wanted = time.monotonic() + _SILENT_S, 0
            elif time.monotonic() > deadline:
                self._end_waiting([*waiting], is_stuck=is_stuck)
            else:
                wanted *= 2

    def _bound_ahead(self, waiting: Collection[Place]) -> None:
        """Forget partitions with the most bytes ahead, but those that are waited for."""
        while sum(self._sizes.values()) > _AHEAD_BYTES:
            others = [place for place, size in self._sizes.items() if size and place not in waiting]
            if not others:
                return
            self._forget([max(others, key=self._sizes.__getitem__)])

    def _end_waiting(self, waiting: Sequence[Place], *, is_stuck: bool) -> None:
        """Give up partitions that give no message, or raise `SourceUnavailable`."""
        if is_stuck and all(map(self._is_gone, waiting)):
            self._give_up(waiting)
            return
        self._forget(list(self._next))
        names = ", ".join(f"{place.topic}-{place.partition}" for place in waiting)
        raise SourceUnavailable(f"{self._why or 'partitions give no message'}: {names}"[:300])

    def _taken(self, place: Place, stop: int) -> Range:
        ahead, messages = self._ahead.get(place, deque[Any]()), list[Any]()
        while ahead and ahead[0].offset() < stop:
            messages.append(ahead.popleft())
        if place in self._done:
            self._done[place] = stop
            self._sizes[place] -= sum(map(_size, messages))
        return Range(messages, self._lost.get(place))

    def _assign(self, starts: Mapping[Place, int]) -> None:
        """Let the consumer continue at the starts of ranges, or at the messages that it has.

        Another process may have read what lies before.
        """
        moved = {
            place: start
            for place, start in starts.items()
            if place not in self._next or not self._done[place] <= start <= self._next[place]
        }
        self._forget([place for place in moved if place in self._next])
        if moved:
            self._start(moved)
        for place, start in starts.items():
            self._taken(place, start)

    def _start(self, starts: Mapping[Place, int]) -> None:
        self._consumer.incremental_assign(
            [TopicPartition(*place, start) for place, start in starts.items()]
        )
        self._next |= starts
        self._done |= starts
        self._ahead |= {place: deque() for place in starts}
        self._sizes |= dict.fromkeys(starts, 0)

    def _forget(self, places: Sequence[Place]) -> None:
        if places:
            self._consumer.incremental_unassign([TopicPartition(*place) for place in places])
        for place in places:
            del self._next[place], self._done[place], self._ahead[place], self._sizes[place]

    def _take(self, message: "Message[Any, Any]") -> None:
        # For each message, and equal to its `Place`, which takes longer to make.
        place: Any = message.topic(), message.partition()
        error = message.error()
        if place not in self._next:
            return
        if error is None:
            self._ahead[place].append(message)
            self._sizes[place] += _size(message)
            self._next[place] = (message.offset() or 0) + 1
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - as above
            # The last offsets may be no messages, but marks of transactions.
            self._next[place] = max(self._next[place], message.offset() or 0)
        elif error.code() in _DELETED:
            self._restart(Place(*place))
        else:
            self._why = error.str()

    def _restart(self, place: Place) -> None:
        """Continue behind what the broker has deleted since the batch was planned."""
        first, _ = ends_of(self._consumer, [place])[place]
        if first > self._next[place]:
            self._forget([place])
            self._start({place: first})
            self._lost[place] = first
        else:
            # The topic was created again: it has nothing of the range.
            self._give_up([place])

    def _is_gone(self, place: Place) -> bool:
        """Return whether the brokers answer, and list a partition no longer."""
        try:
            return place.partition not in partitions_of(self._consumer, place.topic)
        except NoSuchTopic:
            return True
        except SourceUnavailable as error:
            self._why = str(error)
            return False

    def _give_up(self, places: Sequence[Place]) -> None:
        self._forget(places)
        self._lost |= dict.fromkeys(places, MAX_SEQUENCE)


def _size(message: "Message[Any, Any]") -> int:
    """Return about how many bytes of memory a message takes."""
    return len(message) + len(message.key() or b"") + _OBJECT_BYTES


@cache
def reader_of(source: TopicSource, group: str) -> TopicReader:
    """Return this process's reader of a topic."""
    return TopicReader(source, group)


def read_ranges(
    part: SourceRanges, source: TopicSource, schema: StreamSchema, clock_ms: int
) -> Iterator[RangeRecords]:
    """Yield what is read of each range of a part, in order."""
    places = {item: _place(item, source) for item in part.ranges}
    ranges = {place: (item.start, item.stop) for item, place in places.items()}
    try:
        read = reader_of(source, part.group).read(ranges, is_stuck=part.is_stuck)
    except KafkaException as error:
        raise unavailable(error) from error
    for item, place in places.items():
        messages, lost = read[place]
        kept = [message for message in messages if message.value() is not None]
        losses = [] if lost is None else [_loss(item, min(lost, item.stop))]
        chunks = _chunks(place, kept, source, schema, clock_ms)
        yield RangeRecords(item, chunks, len(messages), len(messages) - len(kept), losses)


def _place(item: PartitionRange, source: TopicSource) -> Place:
    return place_of((), item.partition)._replace(topic=item.topic or source.topic)


def _loss(item: PartitionRange, stop: int) -> LostRecords:
    """Return the messages from the start of a range up to `stop`, which the broker has deleted."""
    text = f"the broker has deleted the offsets {item.start} to {stop - 1} before they were read"
    text = f"{item.topic}: {text}" if item.topic else text
    return LostRecords(item.start, stop - item.start, text)


def _chunks(
    place: Place,
    messages: Sequence[Any],
    source: TopicSource,
    schema: StreamSchema,
    clock_ms: int,
) -> Iterator[Chunk]:
    names = [name for name in schema.arrow.names if name not in source.metadata]
    for first in range(0, len(messages), CHUNK):
        own = _fetched(place, messages[first : first + CHUNK], clock_ms)
        decoded = decode(own, source, schema)
        if source.topic_pattern:
            named = {index: f"{place.topic}: {why}" for index, why in decoded.faults.items()}
            decoded = decoded._replace(faults=named)
        yield Chunk(
            own.offsets, own.times_ms, sum(map(len, own.values)), decoded,
            partial(_letter, own, source, names),
        )  # fmt: skip


def _letter(chunk: Fetched, source: TopicSource, names: Sequence[str], index: int) -> bytes:
    return letter_data(chunk, index, source, names)


def _fetched(place: Place, messages: Sequence[Any], clock_ms: int) -> Fetched:
    return Fetched(
        place.partition,
        [message.offset() for message in messages],
        [message.value() for message in messages],
        [message.key() for message in messages],
        [_time_ms(message, clock_ms) for message in messages],
        place.topic,
    )


def _time_ms(message: Any, clock_ms: int) -> int:
    """Return the timestamp of a message, the clock of the batch if it has none or is ahead."""
    kind, ms = message.timestamp()
    return clock_ms if kind == TIMESTAMP_NOT_AVAILABLE else max(0, min(int(ms), clock_ms))
