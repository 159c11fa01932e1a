"""The log in Redis Streams, one per stream, with one position over all of them.

Every append, to any number of streams, is one Lua call that gives all its blocks the same position,
a Redis stream id `<ms>-<sequence>`. The index has one entry per append with the running totals of
records and bytes, which bound a micro-batch without reading the streams, and reject an append
before memory is exhausted.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

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
from controlplane.wire.log.values import (
    DEFAULT_LIMITS,
    NO_TIME,
    START,
    UNBOUNDED,
    WINDOW,
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

# The sequences of a producer expire after a day.
_REMEMBER_S: Final = 24 * 3600

# KEYS: index, committed, newest, producer, counts, streams...; ARGV: limit of records, limit of
# bytes, sequence ('' for none), bytes, digest of the content; then (stream, records, block, newest
# event time ('' for that of the append), how far ahead it may be) per stream. Answers
# (ok, position), (records | bytes, how much waits), (stale, the highest sequence) or (reused, '').
#
# The last position's milliseconds are reused when the clock steps back: positions only grow.
# A producer's hash has its highest sequence, and the last ones with their positions in a ring:
# newer ones replace older ones, and nothing has to be deleted. It is written last: without memory,
# Redis rejects the first write of a script or none.
APPEND: Final = f"""
local sequence, place, high = tonumber(ARGV[3]), nil, nil
if sequence then
  place = sequence % {WINDOW}
  local seen = redis.call('HMGET', KEYS[4], place, 'high')
  high = tonumber(seen[2] or nil)
  if high and sequence <= high - {WINDOW} then return {{'stale', seen[2]}} end
  if seen[1] then
    local known, position, digest = string.match(seen[1], '^(%d+):([%d-]+):?(%x*)$')
    if known == ARGV[3] then
      if digest ~= '' and digest ~= ARGV[5] then return {{'reused', ''}} end
      return {{'ok', position}}
    end
  end
end
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local total, bytes, last_ms, last_seq = 0, 0, 0, 0
if last[1] then
  total, bytes = tonumber(last[1][2][4]), tonumber(last[1][2][6] or 0)
  last_ms, last_seq = string.match(last[1][1], '^(%d+)-(%d+)$')
end
local done = redis.call('HMGET', KEYS[2], 'total', 'bytes')
local waiting = total - tonumber(done[1] or 0)
if waiting >= tonumber(ARGV[1]) then return {{'records', waiting}} end
waiting = bytes - tonumber(done[2] or 0)
if waiting + ARGV[4] > tonumber(ARGV[2]) then return {{'bytes', waiting}} end
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local seq = 0
if ms <= tonumber(last_ms) then ms = tonumber(last_ms); seq = tonumber(last_seq) + 1 end
local id = string.format('%.0f-%d', ms, seq)
local records = 0
for i = 6, #KEYS do
  local at = 6 + (i - 6) * 5
  local newest = ARGV[at + 3]
  if newest == '' then newest = string.format('%.0f', ms) end
  if tonumber(newest) > ms + ARGV[at + 4] then newest = '{NO_TIME}' end
  local mark = redis.call('HGET', KEYS[3], ARGV[at])
  local count = redis.call('HINCRBY', KEYS[5], ARGV[at], ARGV[at + 1])
  redis.call('XADD', KEYS[i], id, 'n', ARGV[at + 1], 'b', ARGV[at + 2], 'x', newest,
    'm', mark or '', 'c', count)
  if tonumber(newest) > tonumber(mark or '{NO_TIME}') then
    redis.call('HSET', KEYS[3], ARGV[at], newest)
  end
  records = records + tonumber(ARGV[at + 1])
end
redis.call('XADD', KEYS[1], id, 'n', records, 'total', string.format('%.0f', total + records),
  'bytes', string.format('%.0f', bytes + ARGV[4]))
if sequence then
  local highest = ARGV[3]
  if high and high > sequence then highest = string.format('%.0f', high) end
  redis.call('HSET', KEYS[4], place, ARGV[3] .. ':' .. id .. ':' .. ARGV[5], 'high', highest)
  redis.call('EXPIRE', KEYS[4], {_REMEMBER_S})
end
return {{'ok', id}}
"""

# KEYS: index, committed, newest; ARGV: position, what the key of a stream begins with.
# The last committed append stays in the index, as the next one continues its totals. All streams
# with appends are trimmed, also those without readers. Trimming is first: Redis accepts it without
# memory, and then accepts the other writes of the script.
COMMIT: Final = """
local function parts(position)
  local ms, seq = string.match(position, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end
local ms, seq = parts(ARGV[1])
local before = redis.call('HGET', KEYS[2], 'position')
if before then
  local old_ms, old_seq = parts(before)
  if ms < old_ms or (ms == old_ms and seq <= old_seq) then return end
end
local found = redis.call('XREVRANGE', KEYS[1], ARGV[1], '-', 'COUNT', 1)
local total, bytes = '0', '0'
if found[1] then total, bytes = found[1][2][4], found[1][2][6] or '0' end
redis.call('XTRIM', KEYS[1], 'MINID', '=', ARGV[1])
for _, stream in ipairs(redis.call('HKEYS', KEYS[3])) do
  redis.call('XTRIM', ARGV[2] .. stream, 'MINID', '=', ARGV[1])
end
redis.call('HSET', KEYS[2], 'position', ARGV[1], 'total', total, 'bytes', bytes)
"""


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


def connect(url: str) -> "redis.Redis":
    """Return a connection with a timeout of 20 s and one immediate retry.

    The retry replaces an idle connection that the server has closed.
    """
    return connect_patiently(url, retry=Retry(NoBackoff(), 1), command_packer=SingleWritePacker())


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
    ) -> str:
        """Append one block per stream, all at one position, and return it; see `Log.append`."""
        size = bytes_of(blocks)
        if size > limits.bytes:
            raise AppendTooLarge(size, limits.bytes)
        producer = keys.producer_key(self.cluster, token.producer if token else "")
        names = [self._index, self._committed, self._newest, producer, self._counts]
        sequence, digest = (token.sequence, digest_of(blocks)) if token else ("", "")
        arguments: list[Any] = [limits.records, limits.bytes, sequence, size, digest]
        for stream, (records, data, newest_ms, max_future_ms) in blocks.items():
            names.append(keys.log_key(self.cluster, stream))
            newest = "" if newest_ms is None else newest_ms
            arguments += [stream, records, data, newest, max_future_ms]
        try:
            answer = cast("list[Any]", self._append(keys=names, args=arguments))
        except redis.RedisError as error:
            raise self._refusal(error) from error
        return _position(answer, token, limits)

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
        """Return the head of the log, with the newest event times of these streams."""
        # The times first: an append in between has no older watermark.
        pipe = self._client.pipeline(transaction=False)
        pipe.hmget(self._newest, [*map(str, streams), ""])
        pipe.xrevrange(self._index, count=1)
        try:
            times, result = pipe.execute()
        except redis.RedisError as error:
            raise LogUnavailable(str(error)) from error
        known = zip(streams, times, strict=False)
        newest = {stream: int(ms) for stream, ms in known if ms is not None}
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


def _position(answer: "list[Any]", token: IdempotencyToken | None, limits: Limits) -> str:
    outcome, value = answer
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
