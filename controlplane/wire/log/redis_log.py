"""The log in Redis Streams, one per stream, with one position over all of them.

Every append, to any number of streams, is one Lua call that gives all its blocks the same position,
a Redis stream id `<ms>-<sequence>`. The index has one entry per append with the running totals of
records and bytes, which bound a micro-batch without reading the streams, and reject an append
before memory is exhausted.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from controlplane.wire import keys
from controlplane.wire.errors import (
    AppendTooLarge,
    IdempotencyTokenReused,
    LogFull,
    LogUnavailable,
    RedisOutOfMemory,
    StaleIdempotencyToken,
)
from controlplane.wire.foreign.entries import MAX_WHOLE, readable, whole
from controlplane.wire.log.redis_scripts import APPEND, COMMIT
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
    bytes_of,
    digest_of,
    position_key,
)
from controlplane.wire.redis_clients import connect_patiently

_NO_MEMORY = "command not allowed when used memory"


class SingleWritePacker:
    """Packs a command into one write: a connection's `command_packer`.

    The client writes every argument of more than 6,000 bytes separately. An append of twenty
    blocks is then 41 writes, and the server wakes for each.
    """

    def pack(self, *arguments: bytes | str | int | float) -> list[bytes]:
        """Return a command in Redis's protocol; its name may be of several words."""
        name, *values = arguments
        words = name if isinstance(name, bytes) else str(name).encode()
        encoded = [
            *words.split(),
            *(value if isinstance(value, bytes) else str(value).encode() for value in values),
        ]
        pieces = [b"*%d\r\n" % len(encoded)]
        for item in encoded:
            pieces += (b"$%d\r\n" % len(item), item, b"\r\n")
        return [b"".join(pieces)]


def connect(url: str, client: "type[redis.Redis]" = redis.Redis) -> "redis.Redis":
    """Return a connection with a timeout of 20 s and one immediate retry.

    The retry replaces an idle connection that the server has closed.
    """
    return connect_patiently(
        url, client=client, retry=Retry(NoBackoff(), 1), command_packer=SingleWritePacker()
    )


# Entries of the index that are read in place of one: the newest may be no append.
_SPARE: Final = 4


class RedisLog:
    """The log of a cluster in Redis; threads may share it."""

    def __init__(self, client: "redis.Redis", cluster: str) -> None:
        self.cluster = cluster
        self.client = client
        self._index = keys.index_key(cluster)
        self._committed = keys.committed_key(cluster)
        self._newest = keys.newest_key(cluster)
        self._counts = keys.counts_key(cluster)
        self._append = client.register_script(APPEND)
        self._commit = client.register_script(COMMIT)

    def append(
        self,
        blocks: Mapping[int, Block],
        token: IdempotencyToken | None = None,
        limits: BacklogLimits = DEFAULT_LIMITS,
    ) -> AppendPosition:
        """Append one block per stream, all at one position, and return it; see `Log.append`."""
        size = bytes_of(blocks)
        if size > limits.bytes:
            raise AppendTooLarge(size, limits.bytes)
        producer = keys.producer_key(self.cluster, token.producer if token else "")
        names = [self._index, self._committed, self._newest, producer, self._counts]
        sequence, digest = (token.sequence, digest_of(blocks)) if token else ("", "")
        note = token.note if token else ""
        arguments: list[Any] = [limits.records, limits.bytes, sequence, size, digest, note]
        for stream, (records, data, newest_ms, max_future_ms, delay_ms, _) in blocks.items():
            names.append(keys.log_key(self.cluster, stream))
            newest = "" if newest_ms is None else newest_ms
            arguments += [stream, records, data, newest, max_future_ms, delay_ms]
        try:
            answer = cast("list[Any]", self._append(keys=names, args=arguments))
        except redis.RedisError as error:
            raise self._refusal(error) from error
        outcome, value, *times = answer
        result = AppendPosition(_position(outcome, value, token, limits))
        result.watermarks = _watermarks(blocks, times) if times else None
        return result

    def last_append(self, producer: str) -> tuple[int, str]:
        """Return the highest sequence of a producer and its newest note, -1 and "" for none."""
        name = keys.producer_key(self.cluster, producer)
        try:
            high, note = cast("list[bytes | None]", self.client.hmget(name, ["high", "note"]))
        except redis.RedisError as error:
            raise LogUnavailable(str(error)) from error
        return (-1 if high is None else int(high)), (note or b"").decode()

    def waiting(self) -> LogBacklog:
        """Return the unread backlog. Raises `LogUnavailable`."""
        try:
            return self._waiting()
        except redis.RedisError as error:
            raise LogUnavailable(str(error)) from error

    def _waiting(self) -> LogBacklog:
        # No transaction: Redis begins none when memory is short.
        pipe = self.client.pipeline(transaction=False)
        pipe.hmget(self._committed, ["total", "bytes"])
        pipe.xrevrange(self._index, count=_SPARE)
        done, result = pipe.execute()
        newest = _newest_step(result)
        if newest is None:
            return LogBacklog(0, 0)
        records, size = newest.total - int(done[0] or 0), newest.bytes - int(done[1] or 0)
        return LogBacklog(max(0, records), max(0, size))

    def head(self, streams: Sequence[int]) -> LogHead:
        """Return the head of the log, with the watermarks of these streams."""
        # The times first: an append in between has no older watermark.
        pipe = self.client.pipeline(transaction=False)
        pipe.hmget(self._newest, [*map(str, streams), ""])
        pipe.xrevrange(self._index, count=_SPARE)
        try:
            times, result = pipe.execute()
        except redis.RedisError as error:
            raise LogUnavailable(str(error)) from error
        known = zip(streams, times, strict=False)
        newest = {stream: int(ms.partition(b":")[0]) for stream, ms in known if ms is not None}
        newest = {stream: ms for stream, ms in newest.items() if ms != NO_TIME}
        step = _newest_step(result)
        return LogHead(START if step is None else step.position, newest)

    def committed_position(self) -> LogPosition:
        """Return the last committed cut, the start of the log before the first."""
        position, total = cast(
            "list[bytes | None]", self.client.hmget(self._committed, ["position", "total"])
        )
        if position is None or total is None:
            return LogPosition(START, 0)
        return LogPosition(position.decode(), int(total))

    def position_after(
        self, start: LogPosition, max_records: int, max_bytes: int = UNBOUNDED
    ) -> LogPosition:
        """Return the furthest cut within both bounds of `start`; see `Log.position_after`."""
        pipe = self.client.pipeline(transaction=False)
        pipe.xrevrange(self._index, count=_SPARE)
        pipe.xrange(self._index, start.position, start.position)
        newest, first = cast("list[list[Any]]", pipe.execute())
        step = _newest_step(newest)
        if step is None:
            return start
        end = LogPosition(step.position, step.total)
        if position_key(end.position) <= position_key(start.position):
            return start
        # A smaller total means that the log was emptied: read what it has.
        before = _newest_step(first)
        bound = (0 if before is None else before.bytes) + max_bytes
        if end.total - start.total <= max_records and step.bytes <= bound:
            return end
        return self._bounded_position(start, max_records, bound)

    def _bounded_position(
        self, start: LogPosition, max_records: int, bytes_bound: int
    ) -> LogPosition:
        """Return the furthest position in the index; `bytes_bound`: a running total."""
        reached, position = start, start.position
        while True:
            page = cast("list[Any]", self.client.xrange(self._index, f"({position}", count=512))
            for step in readable(_step_of, page):
                following = LogPosition(step.position, step.total)
                if step.total - start.total > max_records or step.bytes > bytes_bound:
                    return following if reached == start else reached
                reached = following
            if not page:
                return reached
            position = page[-1][0].decode()

    def read_streams(
        self, streams: Sequence[int], start: str, end: str
    ) -> dict[int, list[LogEntry]]:
        """Return the entries of each stream after `start` up to and including `end`."""
        pipe = self.client.pipeline(transaction=False)
        for stream in streams:
            pipe.xrange(keys.log_key(self.cluster, stream), f"({start}", end)
        pages = cast("list[list[Any]]", pipe.execute())
        return {
            stream: [_entry(row) for row in page]
            for stream, page in zip(streams, pages, strict=True)
            if page
        }

    def newest_entries(self, streams: Sequence[int], count: int) -> dict[int, list[LogEntry]]:
        """Return the newest entries of each stream, oldest first; see `Log.newest_entries`."""
        pipe = self.client.pipeline(transaction=False)
        for stream in streams:
            pipe.xrevrange(keys.log_key(self.cluster, stream), count=count)
        try:
            pages = cast("list[list[Any]]", pipe.execute())
        except redis.RedisError as error:
            raise LogUnavailable(str(error)) from error
        return {
            stream: [_entry(row) for row in reversed(page)]
            for stream, page in zip(streams, pages, strict=True)
            if page
        }

    def behind(self, streams: Sequence[int], end: str) -> dict[int, StreamBacklog]:
        """Return the backlog after `end`, by stream."""
        if not streams:
            return {}
        pipe = self.client.pipeline(transaction=False)
        pipe.hmget(self._counts, list(map(str, streams)))
        for stream in streams:
            pipe.xrange(keys.log_key(self.cluster, stream), f"({end}", count=1)
        counts, *firsts = pipe.execute()
        return {
            stream: _behind(rows[0], int(count))
            for stream, count, rows in zip(streams, counts, firsts, strict=True)
            if rows and count
        }

    def records_after(self, start: LogPosition, end: LogPosition) -> int:
        """Return how many records were appended after `end`; `start` does not matter here."""
        page = cast("list[Any]", self.client.xrevrange(self._index, count=_SPARE))
        newest = _newest_step(page)
        return 0 if newest is None else max(0, newest.total - end.total)

    def mark_committed(self, position: LogPosition) -> None:
        """Record that all records up to `position` are processed, and free their memory."""
        prefix = keys.log_prefix(self.cluster)
        self._commit(
            keys=[self._index, self._committed, self._newest], args=[position.position, prefix]
        )

    def close(self) -> None:
        """Close the connection."""
        self.client.close()

    def _refusal(self, error: "redis.RedisError") -> LogUnavailable | RedisOutOfMemory:
        """Return the exception of the wire for an error of Redis."""
        # Redis rejects the first write of a script without memory: the script changed nothing.
        if _NO_MEMORY in str(error):
            return RedisOutOfMemory(self._waiting().bytes)
        return LogUnavailable(str(error))


def _position(
    outcome: bytes, value: Any, token: IdempotencyToken | None, limits: BacklogLimits
) -> str:
    if outcome == b"records":
        raise LogFull(int(value), limits.records, "records")
    if outcome == b"bytes":
        raise LogFull(int(value), limits.bytes, "bytes")
    if outcome == b"stale":
        assert token is not None
        raise StaleIdempotencyToken(token.producer, token.sequence, int(value))
    if outcome == b"reused":
        assert token is not None
        raise IdempotencyTokenReused(token.producer, token.sequence)
    return cast("bytes", value).decode()


def _watermarks(blocks: Iterable[int], answer: "list[bytes]") -> dict[int, tuple[int, int]]:
    """Return the watermarks of streams before and after an append."""
    times = [int(value) if value else NO_TIME for value in answer]
    pairs = zip(blocks, times[::2], times[1::2], strict=True)
    return {stream: (before, max(before, reached)) for stream, before, reached in pairs}


class _Step(NamedTuple):
    """An entry of the index: its position, and the records and bytes appended up to it."""

    position: str
    total: int
    bytes: int


def _step_of(row: Any) -> _Step:
    position, fields = row
    return _Step(position.decode(), whole(fields[b"total"]), whole(fields[b"bytes"]))


def _newest_step(page: Sequence[Any]) -> _Step | None:
    """Return the first entry of the index that an append has written, None without one."""
    return next(readable(_step_of, page), None)


def _behind(first: Any, count: int) -> StreamBacklog:
    """Return the backlog from a stream's first unread entry on, by its running count."""
    position, fields = first
    records = next(readable(whole, [fields.get(b"n")]), 1)
    before = next(readable(whole, [fields.get(b"c")]), count) - records
    return StreamBacklog(max(0, count - before), _appended_ms(position))


def _entry(row: Any) -> LogEntry:
    """Return an entry; one that no append has written has a block that no node can read."""
    name, fields = row[0].decode(), row[1]
    try:
        watermark, newest_ms = fields[b"m"], int(fields[b"x"])
        mark_ms = whole(watermark) if watermark else None
        if newest_ms != NO_TIME:
            whole(newest_ms)
        records, block = whole(fields[b"n"]), fields[b"b"]
    except (KeyError, ValueError):
        return LogEntry(name, 1, b"", NO_TIME, None, _appended_ms(row[0]))
    return LogEntry(name, max(0, records), block, newest_ms, mark_ms, _appended_ms(row[0]))


def _appended_ms(position: bytes) -> int:
    return min(int(position.partition(b"-")[0]), MAX_WHOLE)
