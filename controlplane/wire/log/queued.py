"""Counting unread entries of streams in Redis without transferring their blocks."""

from collections.abc import Mapping
from typing import Any, Final, cast

import redis

from controlplane.wire import keys

# KEYS: streams; ARGV: end, most records, then the start of each stream. Answers a list per stream:
# the position and the records of its entries, until they exceed the limit.
_COUNT: Final = """
local result, most = {}, tonumber(ARGV[2])
for i, key in ipairs(KEYS) do
  local row, sum, start = {}, 0, ARGV[i + 2]
  while sum <= most do
    local page = redis.call('XRANGE', key, '(' .. start, ARGV[1], 'COUNT', 16)
    if not page[1] then break end
    for _, entry in ipairs(page) do
      local records = tonumber(entry[2][2])
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
