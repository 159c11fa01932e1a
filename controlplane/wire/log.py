"""The durable log of a cluster: Redis Streams with one position over all of them.

Every append, whatever number of streams it touches, is one Lua call that gives all its blocks
the same *position*, a Redis stream id `<ms>-<sequence>` that only grows. So one position cuts
the whole log consistently: a reader that stops at it has, of every stream, exactly what was
appended before. The index holds one entry per append with the running total of records, which
is how a micro-batch is bounded without looking at the streams.

Each entry also says the newest event time of its stream before it, its *mark*. What is late
follows from the mark, so it is part of the log and does not depend on who reads it when.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import redis

from controlplane.wire import keys
from controlplane.wire.errors import LogFull

START: Final = "0-0"
# About 64 bytes a record: half a gigabyte of log before producers are asked to wait.
DEFAULT_LIMIT: Final = 8_000_000

# KEYS: index, committed, newest, streams...; ARGV: limit, then (stream, records, block, newest
# event time) per stream.
# The last position's milliseconds are reused when the clock steps back: positions only grow.
_APPEND: Final = """
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local total, last_ms, last_seq = 0, 0, 0
if last[1] then
  total = tonumber(last[1][2][4])
  last_ms, last_seq = string.match(last[1][1], '^(%d+)-(%d+)$')
end
local waiting = total - tonumber(redis.call('HGET', KEYS[2], 'total') or 0)
if waiting >= tonumber(ARGV[1]) then return {'full', waiting} end
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local seq = 0
if ms <= tonumber(last_ms) then ms = tonumber(last_ms); seq = tonumber(last_seq) + 1 end
local id = string.format('%.0f-%d', ms, seq)
local records = 0
for i = 4, #KEYS do
  local at = 2 + (i - 4) * 4
  local mark = redis.call('HGET', KEYS[3], ARGV[at])
  redis.call('XADD', KEYS[i], id, 'n', ARGV[at + 1], 'b', ARGV[at + 2], 'x', ARGV[at + 3],
    'm', mark or '')
  if not mark or tonumber(ARGV[at + 3]) > tonumber(mark) then
    redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 3])
  end
  records = records + tonumber(ARGV[at + 1])
end
redis.call('XADD', KEYS[1], id, 'n', records, 'total', string.format('%.0f', total + records))
return {'ok', id}
"""


@dataclass(frozen=True, slots=True)
class Cut:
    """A place in the log: its position and the records appended up to it."""

    position: str
    total: int


class Block(NamedTuple):
    """What is appended to a stream: record count, bytes, and the newest event time (ms)."""

    records: int
    data: bytes
    newest_ms: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One block of one stream: where it stands, its record count and its bytes.

    `newest_ms`: the newest event time in it; `mark_ms`: in the stream before it, None for none.
    """

    position: str
    records: int
    block: bytes
    newest_ms: int
    mark_ms: int | None = None

    @property
    def appended_ms(self) -> int:
        """When the block was acknowledged, milliseconds since the epoch."""
        return int(self.position.partition("-")[0])


def append(
    client: "redis.Redis",
    cluster: str,
    blocks: Mapping[int, Block],
    limit: int = DEFAULT_LIMIT,
) -> str:
    """Append one block per stream, all at one position, and return it.

    All blocks are in the log or none is. Raises `LogFull` at `limit` unread records.
    """
    names = [keys.index_key(cluster), keys.committed_key(cluster), keys.newest_key(cluster)]
    arguments: list[Any] = [limit]
    for stream, block in blocks.items():
        names.append(keys.log_key(cluster, stream))
        arguments += [stream, *block]
    outcome, value = cast("tuple[bytes, Any]", client.eval(_APPEND, len(names), *names, *arguments))
    if outcome == b"full":
        raise LogFull(int(value), limit)
    return cast("bytes", value).decode()


def last_cut(client: "redis.Redis", cluster: str) -> Cut | None:
    """Return the end of the log, or None while it is empty."""
    found = cast("list[Any]", client.xrevrange(keys.index_key(cluster), count=1))
    return _cut(found[0]) if found else None


def cut_after(client: "redis.Redis", cluster: str, start: Cut, max_records: int) -> Cut:
    """Return the furthest cut within `max_records` of `start`, at least one append behind it."""
    end = last_cut(client, cluster)
    if end is None or _order(end.position) <= _order(start.position):
        return start
    # A total that fell behind means a log that was emptied and begun anew: take what is there.
    if end.total - start.total <= max_records:
        return end
    return _bounded_cut(client, cluster, start, max_records)


def _bounded_cut(client: "redis.Redis", cluster: str, start: Cut, max_records: int) -> Cut:
    cut, position = start, start.position
    while True:
        page = cast("list[Any]", client.xrange(keys.index_key(cluster), f"({position}", count=512))
        for row in page:
            step = _cut(row)
            if step.total - start.total > max_records:
                return step if cut == start else cut
            cut = step
        if not page:
            return cut
        position = cut.position


def read_streams(
    client: "redis.Redis", cluster: str, streams: Sequence[int], start: str, end: str
) -> dict[int, list[Entry]]:
    """Return the entries of each stream after `start` up to and including `end`."""
    pipe = client.pipeline(transaction=False)
    for stream in streams:
        pipe.xrange(keys.log_key(cluster, stream), f"({start}", end)
    pages = cast("list[list[Any]]", pipe.execute())
    return {
        stream: [_entry(row) for row in page]
        for stream, page in zip(streams, pages, strict=True)
        if page
    }


def mark_committed(client: "redis.Redis", cluster: str, cut: Cut, streams: Sequence[int]) -> None:
    """Record that everything up to `cut` is processed, and give its memory back."""
    pipe = client.pipeline(transaction=False)
    pipe.hset(keys.committed_key(cluster), mapping={"position": cut.position, "total": cut.total})
    # The last committed append stays: its total is where the next one counts on.
    pipe.xtrim(keys.index_key(cluster), minid=cut.position, approximate=False)
    for stream in streams:
        pipe.xtrim(keys.log_key(cluster, stream), minid=cut.position, approximate=False)
    pipe.execute()


def committed_cut(client: "redis.Redis", cluster: str) -> Cut:
    """Return the last committed cut, the start of the log before the first."""
    position, total = cast(
        "list[bytes | None]", client.hmget(keys.committed_key(cluster), ["position", "total"])
    )
    if position is None or total is None:
        return Cut(START, 0)
    return Cut(position.decode(), int(total))


def _order(position: str) -> tuple[int, int]:
    ms, _, sequence = position.partition("-")
    return int(ms), int(sequence)


def _cut(row: Any) -> Cut:
    position, fields = row
    return Cut(position.decode(), int(fields[b"total"]))


def _entry(row: Any) -> Entry:
    position, fields = row
    mark = fields[b"m"]
    return Entry(
        position=position.decode(),
        records=int(fields[b"n"]),
        block=fields[b"b"],
        newest_ms=int(fields[b"x"]),
        mark_ms=int(mark) if mark else None,
    )
