"""The interface of a log and its values: positions, blocks, entries, tokens and limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from controlplane.wire.errors import InvalidIdempotencyToken

START: Final = "0-0"
DEFAULT_MAX_FUTURE_MS: Final = 3_600_000
DEFAULT_DELAY_MS: Final = 120_000
# So many records of one append confirm each other's event times.
CONFIRMING_RECORDS: Final = 3
# The event time of no record, before all others.
NO_TIME: Final = -(2**62)
# About 64 bytes a record: half a gigabyte of log before appends are rejected.
DEFAULT_LIMIT: Final = 8_000_000
DEFAULT_BYTES: Final = 512 * 1024 * 1024
# More bytes than any log has.
UNBOUNDED: Final = 2**62
# The number of a producer's remembered sequences. More requests than these are not under
# way immediately, and what is older is a repetition or a mistake.
WINDOW: Final = 64
MAX_PRODUCER: Final = 100
# Numbers of Lua are doubles: whole up to here.
MAX_SEQUENCE: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A place in the log: its position and the records appended up to it."""

    position: str
    total: int


class Block(NamedTuple):
    """One append to a stream: record count, bytes, and the newest event time (ms).

    `newest_ms`: None if the records have the time of the append. A time further ahead of the
    log's clock than `max_future_ms` is implausible and advances no watermark. `delay_ms`: so far
    ahead a time advances the watermark without a confirmation (`Watermark.after`). `range_ms`: the
    oldest and the newest event time of all plausible records, which stay with the producer.
    """

    records: int
    data: bytes
    newest_ms: int | None
    max_future_ms: int = DEFAULT_MAX_FUTURE_MS
    delay_ms: int = DEFAULT_DELAY_MS
    range_ms: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One block of one stream: its position, its record count and its bytes.

    `newest_ms`: the event time up to which it advances the watermark of its stream (`NO_TIME`:
    none); `mark_ms`: the watermark before it, None for none; `appended_ms`: when it was appended,
    by the clock of the log (milliseconds since the epoch).
    """

    position: str
    records: int
    block: bytes
    newest_ms: int
    mark_ms: int | None = None
    appended_ms: int = 0


@dataclass(frozen=True, slots=True)
class IdempotencyToken:
    """An idempotency token of an append: the producer, and a sequence used once.

    Appending again with the same token adds nothing. The log remembers the last `WINDOW`
    sequences of a producer, so they should grow. `note`: what a log in Redis stores with the
    append, for `RedisLog.last_append`. Raises `InvalidIdempotencyToken`.
    """

    producer: str
    sequence: int
    note: str = ""

    def __post_init__(self) -> None:
        if not 0 < len(self.producer) <= MAX_PRODUCER:
            raise InvalidIdempotencyToken(
                "producer", f"a producer's id has 1 to {MAX_PRODUCER} characters"
            )
        if not 0 <= self.sequence <= MAX_SEQUENCE:
            raise InvalidIdempotencyToken("sequence", f"a sequence is 0 to {MAX_SEQUENCE}")


class Watermark(NamedTuple):
    """The watermark of a stream (ms), and a time ahead of it that nothing has confirmed yet.

    `NO_TIME` for none. `since_ms`: since when no append contradicts the time ahead, by the clock
    of the log.
    """

    ms: int = NO_TIME
    ahead_ms: int = NO_TIME
    since_ms: int = 0

    def after(self, block: Block, appended_ms: int) -> "tuple[Watermark, int]":
        """Return the watermark after a block, and the `newest_ms` of its entry.

        A time that is ahead of the watermark, or of the clock of the log, by more than the delay
        waits. The next append confirms it, unless its newest time is older by more than the delay.
        A time ahead of the clock waits until such appends cover the delay. Three records of one
        append need no confirmation up to the clock (docs/decisions/0072-times-ahead-wait.md). The
        script of the log in Redis computes the same.
        """
        newest = plausible_newest_ms(block.newest_ms, appended_ms, block.max_future_ms)
        if newest == NO_TIME:
            return self, NO_TIME
        ms, ahead, since = self.ms, self.ahead_ms, self.since_ms
        reached, clock = NO_TIME, appended_ms + block.delay_ms
        if ahead == NO_TIME or newest < ahead - block.delay_ms:
            ahead, since = NO_TIME, appended_ms
        elif ahead <= clock or appended_ms - since >= block.delay_ms:
            reached, ms, ahead, since = ahead, max(ms, ahead), NO_TIME, appended_ms
        near = ms + block.delay_ms
        is_alone = ms > NO_TIME and block.records < CONFIRMING_RECORDS and near < newest
        # The clock does not limit a stream whose watermark was confirmed ahead of it.
        is_future = newest > (near if ms > clock else clock)
        if block.newest_ms is not None and (is_alone or is_future):
            return Watermark(ms, max(ahead, newest), since), reached
        ms = max(ms, newest)
        return Watermark(ms, ahead if ahead > ms else NO_TIME, since), max(reached, newest)


class AppendPosition(str):
    """The position of an append, with what the log knew about the lateness of its records.

    `watermarks`: by stream the watermark before the append and after it (ms), `NO_TIME` for none.
    None if the log does not know them: Kafka determines them when the append is read, and Redis
    forgets those of a repeated append. `late`: the records by stream that are older than the
    watermark by more than the stream's delay, None as before; `ahead`: by stream the newest event
    time (ms) if it is ahead of the watermark by more than the delay.
    """

    watermarks: Mapping[int, tuple[int, int]] | None = None
    late: Mapping[int, int] | None = None
    ahead: Mapping[int, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LogHead:
    """The head of a log: its last position, and the watermark (ms) by stream.

    Later appends have watermarks that are not older than these.
    """

    position: str
    newest: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class BacklogLimits:
    """The largest backlog of the log before appends are rejected."""

    records: int = DEFAULT_LIMIT
    bytes: int = DEFAULT_BYTES


DEFAULT_LIMITS: Final = BacklogLimits()


@dataclass(frozen=True, slots=True)
class LogBacklog:
    """The unread records and bytes of the log."""

    records: int
    bytes: int


class StreamBacklog(NamedTuple):
    """The backlog of one stream: records, and when the oldest was appended (ms)."""

    records: int
    oldest_ms: int


def position_key(position: str) -> tuple[int, int]:
    """Return the sort key of a position."""
    major, _, minor = position.partition("-")
    return int(major), int(minor)


def plausible_newest_ms(newest_ms: int | None, appended_ms: int, max_future_ms: int) -> int:
    """Return the newest event time of a block that was appended then; `NO_TIME` for none."""
    if newest_ms is None:
        return appended_ms
    return newest_ms if newest_ms <= appended_ms + max_future_ms else NO_TIME


def digest_of(blocks: Mapping[int, Block]) -> str:
    """Return the digest of the content of an append."""
    result = blake2b(digest_size=12)
    for stream, block in sorted(blocks.items()):
        result.update(b"%d:%d:" % (stream, len(block.data)))
        result.update(block.data)
    return result.hexdigest()


def bytes_of(blocks: Mapping[int, Block]) -> int:
    """Return the bytes of an append, as the limit counts them."""
    return sum(len(block.data) for block in blocks.values())


class Log(Protocol):
    """The durable log of one cluster: appended to by producers, read in cuts by the pipeline.

    A position is a text `<number>-<number>`; positions only grow, over all streams together.
    """

    def append(
        self,
        blocks: Mapping[int, Block],
        token: IdempotencyToken | None = None,
        limits: BacklogLimits = DEFAULT_LIMITS,
    ) -> AppendPosition:
        """Append one block per stream, all at one position, and return it.

        All blocks are in the log or none is. With a token that was used before, nothing is
        added. Raises `LogFull` if `limits` are reached, `AppendTooLarge`,
        `StaleIdempotencyToken`, `IdempotencyTokenReused` if the token had other blocks, and
        `LogUnavailable` when it is not known whether the log has taken it.
        """

    def waiting(self) -> LogBacklog:
        """Return the unread backlog. Raises `LogUnavailable`."""

    def head(self, streams: Sequence[int]) -> LogHead:
        """Return the head of the log, with the watermarks of these streams.

        In Kafka, the newest position that the pipeline has indexed. Raises `LogUnavailable`.
        """

    def committed_position(self) -> LogPosition:
        """Return the last committed cut, the start of the log before the first."""

    def position_after(
        self, start: LogPosition, max_records: int, max_bytes: int = UNBOUNDED
    ) -> LogPosition:
        """Return the last position within both limits after `start`, at least one append later.

        `max_bytes` counts the bytes of blocks, as appends do. Returns `start` where nothing was
        appended since.
        """

    def read_streams(
        self, streams: Sequence[int], start: str, end: str
    ) -> dict[int, list[LogEntry]]:
        """Return the entries of each stream after `start` up to and including `end`.

        Both are positions of the log. All readers get the same result until `end`
        is committed.
        """

    def newest_entries(self, streams: Sequence[int], count: int) -> dict[int, list[LogEntry]]:
        """Return up to `count` of the newest entries of each stream, oldest first.

        Processed ones are among them as long as the log keeps them: in Redis the newest blocks of
        each stream, in Kafka those of the last appends of the topic.
        Raises `LogUnavailable`.
        """

    def behind(self, streams: Sequence[int], end: str) -> dict[int, StreamBacklog]:
        """Return the backlog after `end` by stream, without empty and unknown ones."""

    def records_after(self, start: LogPosition, end: LogPosition) -> int:
        """Return how many records were appended after `end`.

        In Kafka an estimate, by the mean size of the appends after `start` up to `end`.
        """

    def mark_committed(self, position: LogPosition) -> None:
        """Record that everything up to `position` is processed: no replay requests it any more."""

    def close(self) -> None:
        """Close the connections."""
