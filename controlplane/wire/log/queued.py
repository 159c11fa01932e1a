"""Counting records and entries of streams in Redis without transferring their blocks."""

from collections.abc import Mapping
from typing import Any, Final, cast

import redis

from controlplane.wire import keys
from controlplane.wire.log.redis_scripts import NUMBER

# KEYS: streams; ARGV: end, most records, then the start of each stream. Answers a list per stream:
# the position and the records of its entries, until they exceed the limit.
_COUNT: Final = f"""{NUMBER}
local result, most = {{}}, tonumber(ARGV[2])
for i, key in ipairs(KEYS) do
  local row, sum, start = {{}}, 0, ARGV[i + 2]
  while sum <= most do
    local page = redis.call('XRANGE', key, '(' .. start, ARGV[1], 'COUNT', 16)
    if not page[1] then break end
    for _, entry in ipairs(page) do
      local records = number(entry, 'n', 2) or 0
      row[#row + 1] = entry[1]
      row[#row + 1] = records
      sum = sum + records
      start = entry[1]
      if sum > most then break end
    end
  end
  result[i] = row
end
return result
"""


def unread_entries(
    client: "redis.Redis", cluster: str, starts: Mapping[int, str], end: str, most: float
) -> dict[int, list[tuple[str, int]]]:
    """Return position and records of the entries of each stream after its start, up to `end`.

    Of each stream only so many that their records exceed `most`.
    """
    if not starts:
        return {}
    names = [keys.log_key(cluster, stream) for stream in starts]
    script = client.register_script(_COUNT)
    rows = cast("list[list[Any]]", script(keys=names, args=[end, most, *starts.values()]))
    return {
        stream: [
            (position.decode(), int(records))
            for position, records in zip(row[::2], row[1::2], strict=True)
        ]
        for stream, row in zip(starts, rows, strict=True)
    }


# KEYS: counts, streams; ARGV: for each stream its id and its start. Answers for each stream its
# records ever appended, and those of them up to its start.
_APPENDED: Final = f"""{NUMBER}
local result = {{}}
for i = 2, #KEYS do
  local count = tonumber(redis.call('HGET', KEYS[1], ARGV[2 * i - 3]) or 0)
  local first = redis.call('XRANGE', KEYS[i], '(' .. ARGV[2 * i - 2], '+', 'COUNT', 1)[1]
  local read = count
  if first then
    read = (number(first, 'c', 10) or count) - (number(first, 'n', 2) or 0)
  end
  result[#result + 1] = count
  result[#result + 1] = read
end
return result
"""
# Streams of one call: others of Redis's clients wait while it runs.
_STREAMS: Final = 1_000


def appended_records(
    client: "redis.Redis", cluster: str, starts: Mapping[int, str]
) -> dict[int, tuple[int, int]]:
    """Return of each stream the records ever appended, and those after its start."""
    script = client.register_script(_APPENDED)
    counts, result = keys.counts_key(cluster), {}
    pairs = list(starts.items())
    for first in range(0, len(pairs), _STREAMS):
        some = pairs[first : first + _STREAMS]
        names = [counts, *(keys.log_key(cluster, stream) for stream, _ in some)]
        arguments = [value for stream, start in some for value in (stream, start)]
        row = cast("list[int]", script(keys=names, args=arguments))
        for (stream, _), total, read in zip(some, row[::2], row[1::2], strict=True):
            result[stream] = total, total - read
    return result
