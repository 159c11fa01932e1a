"""Dead letters: records of the log that cannot be evaluated, with the reason.

The split node that reads such a record stores it here instead of sending it. The number and bytes
per cluster are limited; the oldest dead letters are deleted. The id consists of stream, position
and index, so writes are idempotent. The counts by stream and reason belong to the batch, and are
independent of the stored dead letters.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, cast

import redis

from controlplane.wire import keys
from controlplane.wire.foreign.entries import EntryLocation, decoded, hash_items, whole

# Limits per cluster.
MAX_COUNT: Final = 10_000
MAX_BYTES: Final = 16 * 1024 * 1024
# Larger records are stored without their content.
MAX_RECORD_BYTES: Final = 64 * 1024
# Stored per batch and split node; others are only counted.
MAX_OF_BATCH: Final = 1_000
# The index of a dead letter that is a whole block.
WHOLE_BLOCK: Final = -1
MAX_PAGE: Final = 1_000


class Reason(StrEnum):
    """The reason of a dead letter."""

    BODY = "body"
    CHANGE = "change"
    FUTURE = "future"
    LOST = "lost"
    MESSAGE = "message"
    NO_TIME = "no_time"
    SCHEMA = "schema"
    TOMBSTONE = "tombstone"
    UNREADABLE = "unreadable"

    @property
    def is_text(self) -> bool:
        """Return whether the data of such dead letters is the text of one record."""
        return self in {Reason.BODY, Reason.MESSAGE}


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One record, or a whole block (`index` is `WHOLE_BLOCK`), and the reason.

    `position`: in the log, or `<partition>-<offset>` of a topic. `data`: the record as a block
    (`record_codec.decode_block`), or the bytes of the block; the text of a message of a topic (its
    record as JSON if it could be read), or of a request's body (`Reason.BODY`), which has no
    position; empty if it is too large.
    `records`: the number of records. `number`: the growing number in the list, 0 before it is
    stored.
    """

    stream: int
    position: str
    index: int
    reason: Reason
    message: str
    data: bytes
    records: int = 1
    number: int = 0

    @property
    def id(self) -> str:
        """Return the id: position, stream and index."""
        return f"{self.position}:{self.stream}:{self.index}"


# KEYS: order (sorted set of ids by number), data (hash), state (hash of number and bytes);
# ARGV: most, most bytes; then (id, data) of each.
_KEEP: Final = """
local new = 0
for i = 3, #ARGV, 2 do
  if redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1]) == 1 then
    new = new + 1
    local number = redis.call('HINCRBY', KEYS[3], 'number', 1)
    redis.call('ZADD', KEYS[1], number, ARGV[i])
    redis.call('HINCRBY', KEYS[3], 'bytes', #ARGV[i + 1])
  end
end
local count = redis.call('ZCARD', KEYS[1])
local bytes = tonumber(redis.call('HGET', KEYS[3], 'bytes') or 0)
while count > 0 and (count > tonumber(ARGV[1]) or bytes > tonumber(ARGV[2])) do
  local oldest = redis.call('ZPOPMIN', KEYS[1])[1]
  bytes = bytes - redis.call('HSTRLEN', KEYS[2], oldest)
  redis.call('HDEL', KEYS[2], oldest)
  count = count - 1
end
redis.call('HSET', KEYS[3], 'bytes', bytes)
return new
"""

# KEYS: order, data, state; ARGV: ids. Returns the number of deleted ones.
_REMOVE: Final = """
local removed = 0
for i = 1, #ARGV do
  local size = redis.call('HSTRLEN', KEYS[2], ARGV[i])
  if redis.call('HDEL', KEYS[2], ARGV[i]) == 1 then
    redis.call('ZREM', KEYS[1], ARGV[i])
    redis.call('HINCRBY', KEYS[3], 'bytes', -size)
    removed = removed + 1
  end
end
return removed
"""

# KEYS: counts; ARGV: batch; then (stream:reason, records) of each. A batch counts once.
_COUNT: Final = """
local last = redis.call('HGET', KEYS[1], 'batch')
if last and tonumber(last) >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'batch', ARGV[1])
for i = 2, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
return 1
"""


def keep(client: "redis.Redis", cluster: str, letters: Sequence[DeadLetter]) -> int:
    """Store dead letters, each once; return the number of new ones."""
    if not letters:
        return 0
    arguments: list[Any] = [MAX_COUNT, MAX_BYTES]
    for letter in letters[:MAX_OF_BATCH]:
        arguments += [letter.id, _encoded(letter)]
    return int(cast("int", client.eval(_KEEP, 3, *_names(cluster), *arguments)))


def page(
    client: "redis.Redis", cluster: str, *, after: int = 0, limit: int = 100
) -> list[DeadLetter]:
    """Return stored dead letters in the order of their numbers, after number `after`."""
    return _page(client, cluster, client.zrangebyscore, f"({after}", "+inf", limit)


def newest(
    client: "redis.Redis", cluster: str, *, before: int = 0, limit: int = 100
) -> list[DeadLetter]:
    """Return stored dead letters, the newest first, before a number (0: all)."""
    stop = f"({before}" if before else "+inf"
    return _page(client, cluster, client.zrevrangebyscore, stop, "-inf", limit)


def by_ids(client: "redis.Redis", cluster: str, ids: Sequence[str]) -> list[DeadLetter]:
    """Return the stored dead letters with these ids, in their order."""
    if not ids:
        return []
    rows = cast("list[bytes | None]", client.hmget(_names(cluster)[1], list(ids)))
    pairs = zip(ids, rows, strict=True)
    return [letter for name, row in pairs if row and (letter := _read(client, cluster, name, row))]


def _page(
    client: "redis.Redis", cluster: str, read: Callable[..., Any], start: str, stop: str, limit: int
) -> list[DeadLetter]:
    """Return dead letters with numbers from start to stop, read by a command of sorted sets."""
    order, data, _ = _names(cluster)
    result: list[tuple[bytes, float]] = read(
        order, start, stop, start=0, num=min(limit, MAX_PAGE), withscores=True
    )
    if not result:
        return []
    rows = cast("list[bytes | None]", client.hmget(data, [name for name, _ in result]))
    return [
        replace(letter, number=int(number))
        for (name, number), row in zip(result, rows, strict=True)
        if row and (letter := _read(client, cluster, name.decode("utf-8", "replace"), row))
    ]


def every(client: "redis.Redis", cluster: str, after: int = 0) -> Iterator[DeadLetter]:
    """Yield all stored dead letters after a number, page by page."""
    while result := page(client, cluster, after=after, limit=MAX_PAGE):
        yield from result
        after = result[-1].number


def remove(client: "redis.Redis", cluster: str, ids: Sequence[str]) -> int:
    """Delete dead letters that were appended again or discarded; return their number."""
    if not ids:
        return 0
    return int(cast("int", client.eval(_REMOVE, 3, *_names(cluster), *ids)))


def count(
    client: "redis.Redis", cluster: str, batch: int, counts: Mapping[str, Mapping[str, int]]
) -> None:
    """Count the dead letters of a batch, by stream and reason; a batch counts once."""
    rows = [
        value
        for stream, reasons in counts.items()
        for reason, records in reasons.items()
        for value in (f"{stream}:{reason}", records)
    ]
    if rows:
        client.eval(_COUNT, 1, keys.dead_counts_key(cluster), batch, *rows)


def add_count(
    client: "redis.Redis", cluster: str, stream: int, reason: Reason, records: int
) -> None:
    """Count dead letters of a request, which belong to no batch."""
    client.hincrby(keys.dead_counts_key(cluster), f"{stream}:{reason}", records)


def read_counts(client: "redis.Redis", cluster: str) -> dict[int, dict[Reason, int]]:
    """Return the numbers of all dead letters ever, by stream and reason."""
    result: dict[int, dict[Reason, int]] = {}

    def read(name: str, records: bytes) -> None:
        stream, colon, reason = name.partition(":")
        if colon:
            result.setdefault(whole(stream), {})[Reason(reason)] = whole(records)

    hash_items(client, cluster, EntryLocation.DEAD_LETTERS, keys.dead_counts_key(cluster), read)
    return result


def _names(cluster: str) -> tuple[str, str, str]:
    return keys.dead_order_key(cluster), keys.dead_data_key(cluster), keys.dead_state_key(cluster)


def _encoded(dead_letter: DeadLetter) -> bytes:
    head = json.dumps(
        [dead_letter.reason, dead_letter.message, dead_letter.records], separators=(",", ":")
    ).encode()
    return head + b"\n" + (dead_letter.data if len(dead_letter.data) <= MAX_RECORD_BYTES else b"")


def _read(client: "redis.Redis", cluster: str, name: str, row: bytes) -> DeadLetter | None:
    place = EntryLocation.DEAD_LETTERS
    return decoded(client, cluster, place, lambda value: _decoded(name, value), row, name)


def _decoded(name: str, row: bytes) -> DeadLetter:
    position, stream, index = name.split(":")
    head, _, data = row.partition(b"\n")
    reason, message, records = json.loads(head)
    place = whole(stream), position, whole(index)
    return DeadLetter(*place, Reason(reason), str(message), data, whole(records))
