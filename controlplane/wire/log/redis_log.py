"""The log in Redis Streams, one per stream, with one position over all of them.

Every append, to any number of streams, is one Lua call that gives all its blocks the same position,
a Redis stream id `<ms>-<sequence>`. The index has one entry per append with the running totals of
records and bytes, which bound a micro-batch without reading the streams, and reject an append
before memory is exhausted.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

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
from controlplane.wire.log.redis_scripts import APPEND, COMMIT
from controlplane.wire.log.values import (
    DEFAULT_LIMITS,
    NO_TIME,
    START,
    UNBOUNDED,
    AppendPosition,
    Block,
    Entry,
    IdempotencyToken,
    Limits,
    LogBacklog,
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


class RedisLog:
    """The log of a cluster in Redis; threads may share it."""

    def __init__(self, client: "redis.Redis", cluster: str) -> None:
        self.cluster = cluster
        self._client = client
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
        limits: Limits = DEFAULT_LIMITS,
    ) -> AppendPosition:
        """Append one block per stream, all at one position, and return it; see `Log.append`."""
        size = bytes_of(blocks)
        if size > limits.bytes:
            raise AppendTooLarge(size, limits.bytes)
        producer = keys.producer_key(self.cluster, token.producer if token else "")
        names = [self._index, self._committed, self._newest, producer, self._counts]
        sequence, digest = (token.sequence, digest_of(blocks)) if token else ("", "")
        arguments: list[Any] = [limits.records, limits.bytes, sequence, size, digest]
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

    def waiting(self) -> LogBacklog:
        """Return the unread backlog. Raises `LogUnavailable`."""
        try:
            return self._waiting()
        except redis.RedisError as error:
            raise LogUnavailable(str(error)) from error

    def _waiting(self) -> LogBacklog:
        # No transaction: Redis begins none when memory is short.
        pipe = self._client.pipeline(transaction=False)
        pipe.hmget(self._committed, ["total", "bytes"])
        pipe.xrevrange(self._index, count=1)
        done, result = pipe.execute()
        if not result:
            return LogBacklog(0, 0)
        fields = result[0][1]
        records = int(fields[b"total"]) - int(done[0] or 0)
        return LogBacklog(max(0, records), max(0, int(fields.get(b"bytes", 0)) - int(done[1] or 0)))

    def head(self, streams: Sequence[int]) -> LogHead:
        """Return the head of the log, with the watermarks of these streams."""
        # The times first: an append in between has no older watermark.
        pipe = self._client.pipeline(transaction=False)
        pipe.hmget(self._newest, [*map(str, streams), ""])
        pipe.xrevrange(self._index, count=1)
        try:
            times, result = pipe.execute()
        except redis.RedisError as error:
            raise LogUnavailable(str(error)) from error
        known = zip(streams, times, strict=False)
        newest = {stream: int(ms.partition(b":")[0]) for stream, ms in known if ms is not None}
        newest = {stream: ms for stream, ms in newest.items() if ms != NO_TIME}
        return LogHead(_position_of(result[0]).position if result else START, newest)

    def committed_position(self) -> LogPosition:
        """Return the last committed cut, the start of the log before the first."""
        position, total = cast(
            "list[bytes | None]", self._client.hmget(self._committed, ["position", "total"])
        )
        if position is None or total is None:
            return LogPosition(START, 0)
        return LogPosition(position.decode(), int(total))

    def position_after(
        self, start: LogPosition, max_records: int, max_bytes: int = UNBOUNDED
    ) -> LogPosition:
        """Return the furthest cut within both bounds of `start`; see `Log.position_after`."""
        pipe = self._client.pipeline(transaction=False)
        pipe.xrevrange(self._index, count=1)
        pipe.xrange(self._index, start.position, start.position)
        newest, first = cast("list[list[Any]]", pipe.execute())
        if not newest:
            return start
        end = _position_of(newest[0])
        if position_key(end.position) <= position_key(start.position):
            return start
        # A smaller total means that the log was emptied: read what it has.
        bound = _bytes_up_to(first[0] if first else None) + max_bytes
        if end.total - start.total <= max_records and _bytes_up_to(newest[0]) <= bound:
            return end
        return self._bounded_position(start, max_records, bound)

    def _bounded_position(
        self, start: LogPosition, max_records: int, bytes_bound: int
    ) -> LogPosition:
        """Return the furthest position in the index; `bytes_bound`: a running total."""
        reached, position = start, start.position
        while True:
            page = cast("list[Any]", self._client.xrange(self._index, f"({position}", count=512))
            for row in page:
                step = _position_of(row)
                if step.total - start.total > max_records or _bytes_up_to(row) > bytes_bound:
                    return step if reached == start else reached
                reached = step
            if not page:
                return reached
            position = reached.position

    def read_streams(self, streams: Sequence[int], start: str, end: str) -> dict[int, list[Entry]]:
        """Return the entries of each stream after `start` up to and including `end`."""
        pipe = self._client.pipeline(transaction=False)
        for stream in streams:
            pipe.xrange(keys.log_key(self.cluster, stream), f"({start}", end)
        pages = cast("list[list[Any]]", pipe.execute())
        return {
            stream: [_entry(row) for row in page]
            for stream, page in zip(streams, pages, strict=True)
            if page
        }

    def newest_entries(self, streams: Sequence[int], count: int) -> dict[int, list[Entry]]:
        """Return the newest entries of each stream, oldest first; see `Log.newest_entries`."""
        pipe = self._client.pipeline(transaction=False)
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
        pipe = self._client.pipeline(transaction=False)
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
        newest = cast("list[Any]", self._client.xrevrange(self._index, count=1))
        return max(0, _position_of(newest[0]).total - end.total) if newest else 0

    def mark_committed(self, position: LogPosition) -> None:
        """Record that all records up to `position` are processed, and free their memory."""
        prefix = keys.log_prefix(self.cluster)
        self._commit(
            keys=[self._index, self._committed, self._newest], args=[position.position, prefix]
        )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _refusal(self, error: "redis.RedisError") -> LogUnavailable | RedisOutOfMemory:
        """Return the exception of the wire for an error of Redis."""
        # Redis rejects the first write of a script without memory: the script changed nothing.
        if _NO_MEMORY in str(error):
            return RedisOutOfMemory(self._waiting().bytes)
        return LogUnavailable(str(error))


def _position(outcome: bytes, value: Any, token: IdempotencyToken | None, limits: Limits) -> str:
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


def _position_of(row: Any) -> LogPosition:
    position, fields = row
    return LogPosition(position.decode(), int(fields[b"total"]))


def _bytes_up_to(row: Any) -> int:
    """Return the running total of bytes of an index entry, 0 for none or one without a total."""
    return int(row[1].get(b"bytes", 0)) if row is not None else 0


def _behind(first: Any, count: int) -> StreamBacklog:
    """Return the backlog from a stream's first unread entry on, by its running count."""
    position, fields = first
    records = int(fields[b"n"])
    before = int(fields.get(b"c", count)) - records
    return StreamBacklog(count - before, int(position.decode().partition("-")[0]))


def _entry(row: Any) -> Entry:
    position, fields = row
    watermark = fields[b"m"]
    name = position.decode()
    return Entry(
        position=name,
        records=int(fields[b"n"]),
        block=fields[b"b"],
        newest_ms=int(fields[b"x"]),
        mark_ms=int(watermark) if watermark else None,
        appended_ms=int(name.partition("-")[0]),
    )
