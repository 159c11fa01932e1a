"""The log in Kafka: one topic of one partition per cluster, one message per append.

One message has the blocks of all its streams, so one offset cuts the whole log. The site's Redis
stores the state of the reader at a cut (`kafka_prefix`).
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Event, Lock
from time import monotonic
from typing import Any, Final

import redis
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from controlplane.wire.errors import (
    AppendTooLarge,
    BadLogUrl,
    IdempotencyTokenReused,
    LogGap,
    LogUnavailable,
)
from controlplane.wire.foreign.entries import EntryLocation, skip
from controlplane.wire.log.address import KafkaAddress
from controlplane.wire.log.kafka_backlog import BacklogMeter, note_of, total_of
from controlplane.wire.log.kafka_clients import new_client
from controlplane.wire.log.kafka_message import HEADER, Append, encode, offset_at, position_behind
from controlplane.wire.log.kafka_prefix import Prefix, PrefixStore
from controlplane.wire.log.kafka_reader import LOG_SETTINGS, PARTITION, TIMEOUT_S, KafkaReader
from controlplane.wire.log.values import (
    DEFAULT_LIMITS,
    NO_TIME,
    START,
    UNBOUNDED,
    AppendPosition,
    BacklogLimits,
    Block,
    IdempotencyToken,
    LogBacklog,
    LogEntry,
    LogHead,
    LogPosition,
    StreamBacklog,
    Watermark,
    bytes_of,
    digest_of,
)

# Tokens of this process with remembered positions.
_REMEMBERED: Final = 1000
# Appends that are looked at for each of the newest entries of a stream.
_LOOKED_AT: Final = 32
_TOO_LARGE: Final = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE}


class KafkaLog:
    """The log of a cluster in Kafka; threads may append, one thread reads by the site's Redis."""

    def __init__(
        self, address: KafkaAddress, cluster: str, site: "redis.Redis | None" = None
    ) -> None:
        """Open the log without a request to Kafka. Raises `BadLogUrl` on a wrong option."""
        self.cluster = cluster
        self._address = address
        self._site = site
        self._appended: OrderedDict[IdempotencyToken, tuple[AppendPosition, str]] = OrderedDict()
        self._lock = Lock()
        self._last_error = ""
        try:
            self._producer = self._new_producer()
            self._reader = KafkaReader(address, f"weir-{cluster}")
            # A reader of its own: it looks at the end, where the pipeline does not read.
            self._backlog = BacklogMeter(KafkaReader(address, f"weir-{cluster}"))
        except KafkaException as error:
            raise BadLogUrl(str(error.args[0])) from error

    def append(
        self,
        blocks: Mapping[int, Block],
        token: IdempotencyToken | None = None,
        limits: BacklogLimits = DEFAULT_LIMITS,
    ) -> AppendPosition:
        """Append one message with all blocks and return its position; see `Log.append`.

        A token that another process has used is found by the reader, which passes it over; that
        its records were others, only this process finds.
        """
        digest = "" if token is None else digest_of(blocks)
        if token is not None and (known := self._appended.get(token)):
            if known[1] != digest:
                raise IdempotencyTokenReused(token.producer, token.sequence)
            return known[0]
        size = bytes_of(blocks)
        if size > limits.bytes:
            raise AppendTooLarge(size, limits.bytes)
        self._backlog.check(size, limits)
        offset = self._produced(*encode(blocks, token))
        self._backlog.add(offset, sum(block.records for block in blocks.values()), size)
        position = AppendPosition(position_behind(offset))
        if token is not None:
            self._remember(token, position, digest)
        return position

    def waiting(self) -> LogBacklog:
        """Return the unread backlog; an estimate if other processes append, too."""
        return self._backlog.waiting()

    def head(self, streams: Sequence[int]) -> LogHead:
        """Return the newest position that the driver has indexed, with the watermarks there."""
        try:
            position, prefix = self._kept().newest()
        except redis.RedisError as error:
            raise LogUnavailable(str(error)) from error
        times = {stream: prefix.newest.get(stream, Watermark()).ms for stream in streams}
        return LogHead(position, {stream: ms for stream, ms in times.items() if ms != NO_TIME})

    def committed_position(self) -> LogPosition:
        """Return the last committed cut, by the site's Redis, else by the consumer group."""
        kept = self._kept().committed()
        if kept is not None:
            return LogPosition(*kept)
        answer = self._reader.committed()
        return (
            LogPosition(START, 0)
            if answer is None
            else LogPosition(f"{answer[0]}-0", total_of(answer[1]))
        )

    def position_after(
        self, start: LogPosition, max_records: int, max_bytes: int = UNBOUNDED
    ) -> LogPosition:
        """Return the last position within both limits, and index up to it. Raises `LogGap`."""
        begin, end = self._offset_range(start)
        if begin >= end:
            return start
        kept = self._kept()
        prefix = kept.prefix_of(start.position)
        before, position = prefix.total, start.position
        most, most_bytes = before + max_records, prefix.size + max_bytes
        for append in self._reader.appends(begin, end):
            records, size = prefix.total + append.records, prefix.size + len(append.data)
            if position != start.position and (records > most or size > most_bytes):
                self._reader.put_back()
                break
            if append.fault is not None:
                client = self._kept().client
                skip(client, self.cluster, EntryLocation.LOG, append.fault, append.offset + 1)
            prefix.take(append)
            position = append.position
        kept.keep(start.position, position, prefix)
        return LogPosition(position, start.total + prefix.total - before)

    def read_streams(
        self, streams: Sequence[int], start: str, end: str
    ) -> dict[int, list[LogEntry]]:
        """Return the entries of each stream after `start` up to and including `end`."""
        prefix = self._kept().prefix_of(start)
        wanted = set(streams)
        entries: dict[int, list[LogEntry]] = {}
        first = offset_at(start) or self._reader.ends()[0]
        for append in self._reader.appends(first, offset_at(end)):
            times_ms = prefix.take(append)
            if times_ms is not None:
                _collect(entries, append, times_ms, wanted)
        return entries

    def newest_entries(self, streams: Sequence[int], count: int) -> dict[int, list[LogEntry]]:
        """Return the newest entries of each stream among the last appends of the topic.

        Their watermarks are those of the entries that are read: earlier ones are not known here.
        """
        first, end = self._reader.ends()
        wanted, prefix = set(streams), Prefix()
        entries: dict[int, list[LogEntry]] = {}
        for append in self._reader.appends(max(first, end - _LOOKED_AT * count), end):
            times_ms = prefix.take(append)
            if times_ms is not None:
                _collect(entries, append, times_ms, wanted)
        return {stream: rows[-count:] for stream, rows in entries.items()}

    def behind(self, streams: Sequence[int], end: str) -> dict[int, StreamBacklog]:
        """Return nothing: Kafka reports the backlog of all streams together only."""
        return {}

    def records_after(self, start: LogPosition, end: LogPosition) -> int:
        """Return an estimate of the records after `end`, by the mean of the messages before it."""
        first, reached = offset_at(start.position), offset_at(end.position)
        messages = max(0, self._reader.ends()[1] - reached)
        return round(messages * (end.total - start.total) / max(1, reached - first))

    def mark_committed(self, position: LogPosition) -> None:
        """Record that all records up to `position` are processed, here and for Kafka's tools.

        Kafka deletes by its own retention, which must keep unread messages.
        """
        kept = self._kept()
        size = kept.prefix_of(position.position).size
        if kept.commit(position.position, position.total):
            self._reader.commit(offset_at(position.position), note_of(position.total, size))

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()
        self._backlog.close()
        self._producer.flush(0)
        if self._site is not None:
            self._site.close()

    def _kept(self) -> PrefixStore:
        if self._site is None:
            raise LogUnavailable(
                "a log in Kafka is read with the site's Redis, which was not named"
            )
        return PrefixStore(self._site, self.cluster, self._address.topic)

    def _offset_range(self, start: LogPosition) -> tuple[int, int]:
        """Return the offsets to read from and up to."""
        first, end = self._reader.ends()
        wanted = offset_at(start.position)
        if end < wanted:
            raise LogGap(
                f"the topic {self._address.topic} ends at {end}, and was read up to {wanted}: "
                "it was deleted, or created again"
            )
        if wanted < first and start.position != START and not self._address.skip_lost:
            raise LogGap(
                f"Kafka has deleted {first - wanted} appends of the topic {self._address.topic} "
                "that were not read"
            )
        return max(first, wanted), end

    def _new_producer(self) -> Producer:
        settings = {
            "enable.idempotence": True,
            "linger.ms": 0,
            "delivery.timeout.ms": int(TIMEOUT_S * 1000),
            "error_cb": self._note,
            **LOG_SETTINGS,
            **self._address.options,
        }
        return new_client(Producer, self._address.servers, settings)

    def _note(self, error: KafkaError) -> None:
        """Store the newest connection error of librdkafka, because a timeout has no cause."""
        self._last_error = error.str()

    def _produced(self, head: bytes, value: bytes) -> int:
        """Return the offset of a new message after the required replicas have it."""
        done, answer = Event(), list[Any]()

        def delivered(error: KafkaError | None, message: "Message[Any, Any]") -> None:
            answer.append(error or message.offset())
            done.set()

        self._send(head, value, delivered)
        deadline = monotonic() + 2 * TIMEOUT_S
        while not done.is_set() and monotonic() < deadline:
            self._producer.poll(0.05)
        if not answer:
            raise LogUnavailable("Kafka does not answer")
        if isinstance(answer[0], KafkaError):
            raise self._failure(answer[0], len(value))
        return int(answer[0])

    def _send(self, head: bytes, value: bytes, delivered: Any) -> None:
        try:
            self._producer.produce(
                self._address.topic, value=value, headers=[(HEADER, head)],
                partition=PARTITION, on_delivery=delivered,
            )  # fmt: skip
        except BufferError as error:
            raise LogUnavailable("Kafka does not take appends as fast as they come") from error
        except KafkaException as error:
            raise self._failure(error.args[0], len(value)) from error

    def _failure(self, error: KafkaError, size: int) -> LogUnavailable | AppendTooLarge:
        if error.code() in _TOO_LARGE:
            return AppendTooLarge(size, None)
        if error.fatal():
            # librdkafka cannot continue without a doubt; our tokens can.
            self._producer = self._new_producer()
        answer = f"; {self._last_error}" if self._last_error else ""
        return LogUnavailable(f"{error.str()} (topic {self._address.topic}){answer}")

    def _remember(self, token: IdempotencyToken, position: AppendPosition, digest: str) -> None:
        with self._lock:
            self._appended[token] = position, digest
            if len(self._appended) > _REMEMBERED:
                self._appended.popitem(last=False)


def _collect(
    entries: dict[int, list[LogEntry]],
    append: Append,
    times_ms: Mapping[int, tuple[int | None, int]],
    wanted: set[int],
) -> None:
    offset = 0
    for piece in append.pieces:
        block = append.data[offset : offset + piece.length]
        offset += piece.length
        if piece.stream in wanted:
            mark_ms, newest_ms = times_ms[piece.stream]
            place = append.position, piece.records, block
            entry = LogEntry(*place, newest_ms, mark_ms, append.appended_ms)
            entries.setdefault(piece.stream, []).append(entry)
