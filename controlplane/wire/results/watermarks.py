"""Watermarks: the committed event time of each stream, and which windows are final by it.

The driver commits the newest event time of each stream in a batch after the rows of all nodes are
written. While records wait at nodes (an emulated capacity) nothing is settled, as these records are
in no window. An aggregator node has a batch's parts one batch later, so the times that were settled
with the batch before are stored, too.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import redis

from controlplane.wire import keys

# KEYS: watermarks. ARGV: batch, clock (ms; it never goes back), records that wait, then stream and
# newest event time.
# Fields: `read:` the newest event time, `active:` the clock of the last batch with records,
# `settled:` and `merged:` up to where windows are complete, without and with an aggregator node.
_COMMIT: Final = """
local batch = tonumber(ARGV[1])
local clock = redis.call('HGET', KEYS[1], 'clock')
if not clock or tonumber(ARGV[2]) > tonumber(clock) then clock = ARGV[2] end
local before = tonumber(redis.call('HGET', KEYS[1], 'batch') or -1)
if batch <= before then return 0 end
local function list(name)
    local text = redis.call('HGET', KEYS[1], name)
    return text and cjson.decode(text) or {}
end
local fields = {'batch', batch, 'clock', clock}
local function set(name, value)
    fields[#fields + 1] = name
    fields[#fields + 1] = value
end
for _, stream in ipairs(list('fresh')) do
    set('merged:' .. stream, redis.call('HGET', KEYS[1], 'settled:' .. stream))
end
local open, known = list('open'), {}
for _, stream in ipairs(open) do known[stream] = true end
for at = 4, #ARGV, 2 do
    local stream, newest = ARGV[at], ARGV[at + 1]
    local there = redis.call('HGET', KEYS[1], 'read:' .. stream)
    if there and tonumber(there) > tonumber(newest) then newest = there end
    redis.call('HSET', KEYS[1], 'read:' .. stream, newest, 'active:' .. stream, clock)
    if not known[stream] then open[#open + 1] = stream end
end
if tonumber(ARGV[3]) == 0 then
    for _, stream in ipairs(open) do
        set('settled:' .. stream, redis.call('HGET', KEYS[1], 'read:' .. stream))
    end
    set('fresh', cjson.encode(open))
    set('open', '[]')
else
    set('fresh', '[]')
    set('open', cjson.encode(open))
end
for at = 1, #fields, 4000 do
    redis.call('HSET', KEYS[1], unpack(fields, at, math.min(at + 3999, #fields)))
end
if tonumber(clock) > 0 then redis.call('HSETNX', KEYS[1], 'since', clock) end
return 1
"""


@dataclass(frozen=True, slots=True)
class Reached:
    """The event times (ms) up to which windows of one stream are complete, None without any.

    `merged`: for queries with an aggregator node; `active_ms`: the clock of the last batch with
    records of the stream.
    """

    settled: int | None = None
    merged: int | None = None
    active_ms: int = 0


@dataclass(frozen=True, slots=True)
class Watermarks:
    """The committed batch, its clock, the clock of the first batch, the streams."""

    batch: int = -1
    clock_ms: int = 0
    since_ms: int = 0
    streams: Mapping[int, Reached] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueryInputs:
    """The inputs of a query: its streams, whether it has an aggregator node, and its start.

    `idle_ms`: by stream, the time without records after which it keeps no window open.
    """

    streams: Collection[int]
    merged: bool = False
    since_ms: int = 0
    idle_ms: Mapping[int, int] = field(default_factory=dict)


def commit(
    client: "redis.Redis",
    cluster: str,
    batch: int,
    clock_ms: int,
    waiting: int,
    newest: Mapping[int, int],
) -> None:
    """Commit the newest event times of streams after a batch whose rows are all written.

    `waiting`: records that were read and are in no window. A replay changes nothing.
    """
    pairs = [value for pair in newest.items() for value in pair]
    client.register_script(_COMMIT)(
        keys=[keys.watermarks_key(cluster)], args=[batch, clock_ms, waiting, *pairs]
    )


def read(client: "redis.Redis", cluster: str) -> Watermarks:
    """Return the committed watermarks."""
    row = cast("dict[bytes, bytes]", client.hgetall(keys.watermarks_key(cluster)))
    streams: dict[int, dict[str, int]] = {}
    for name, value in row.items():
        kind, colon, stream = name.decode().partition(":")
        if colon and kind in _FIELDS:
            streams.setdefault(int(stream), {})[_FIELDS[kind]] = int(value)
    return Watermarks(
        int(row.get(b"batch", -1)),
        int(row.get(b"clock", 0)),
        int(row.get(b"since", 0)),
        {stream: Reached(**fields) for stream, fields in streams.items()},
    )


_FIELDS: Final = {"settled": "settled", "merged": "merged", "active": "active_ms"}


def complete_until(watermarks: Watermarks, reading: QueryInputs) -> int | None:
    """Return the event time (ms) up to which no record of a query is missing, None without one.

    The least over its streams that are not idle; the largest of all if all are idle. Add the
    query's lateness to the end of a window to compare.
    """
    reached = {stream: watermarks.streams.get(stream, Reached()) for stream in reading.streams}
    active = [
        value
        for stream, value in reached.items()
        if not _is_idle(value, stream, watermarks, reading)
    ]
    times = [item.merged if reading.merged else item.settled for item in active or reached.values()]
    known = [ms for ms in times if ms is not None]
    if active:
        return min(known) if len(known) == len(times) else None
    return max(known, default=None)


def _is_idle(reached: Reached, stream: int, watermarks: Watermarks, reading: QueryInputs) -> bool:
    limit = reading.idle_ms.get(stream)
    since = max(reached.active_ms, reading.since_ms, watermarks.since_ms)
    return limit is not None and watermarks.clock_ms - since >= limit


def newest_of(row: Mapping[str, Any]) -> dict[int, int]:
    """Return the newest event time of each stream as a row of telemetry has it."""
    return {int(stream): int(ms) for stream, ms in row["newest"].items()}


def in_flight(row: Mapping[str, Any]) -> int:
    """Return the number of records that a batch left in backlogs and in transfers."""
    return int(row["waiting"]) + sum(int(move["waited"]) for move in row["moves"])
