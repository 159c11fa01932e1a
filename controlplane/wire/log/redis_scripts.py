"""The scripts of the log in Redis: an append, and a commit."""

from typing import Final

from controlplane.wire.log.values import CONFIRMING_RECORDS, NO_TIME, WINDOW

# What stays of a stream after its records are processed: so many blocks at most, and no further
# block once there are so many records.
KEPT_BLOCKS: Final = 8
KEPT_RECORDS: Final = 1_000
# The sequences of a producer expire after a day, with a note after 90 days.
_REMEMBER_S: Final = 24 * 3600
_REMEMBER_NOTE_S: Final = 90 * 24 * 3600

# Of an entry the number of a field by its name and place, nil if no append has written it.
NUMBER: Final = """
local function number(entry, name, place)
  local text = entry[2][place]
  if entry[2][place - 1] == name and text and #text < 17 then
    return tonumber(string.match(text, '^%d+$') or nil)
  end
end
"""

# KEYS: index, committed, newest, producer, counts, streams...; ARGV: limit of records, limit of
# bytes, sequence ('' for none), bytes, digest of the content, note ('' for none); then (stream,
# records, block, newest event time ('' for that of the append), how far ahead it may be, and
# without a confirmation) per stream. Answers (ok, position, then the watermark before and the time
# that the block advances it to per stream, '' for none), (records | bytes, how much waits), (stale,
# the highest sequence) or (reused, '').
#
# `advance` is `Watermark.after`. The hash has the watermark of a stream, and while a time ahead
# waits `watermark:ahead:since`.
#
# The last position's milliseconds are reused when the clock steps back: positions only grow.
# A producer's hash has its highest sequence, and the last ones with their positions in a ring:
# newer ones replace older ones, and nothing has to be deleted. It is written last: without memory,
# Redis rejects the first write of a script or none.
APPEND: Final = f"""{NUMBER}
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
      local answer = {{'ok', position}}
      for i = 6, #KEYS do
        local entry = redis.call('XRANGE', KEYS[i], position, position)[1]
        if not entry then return {{'ok', position}} end
        answer[#answer + 1] = entry[2][8]
        answer[#answer + 1] = entry[2][6]
      end
      return answer
    end
  end
end
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local total, bytes, last_ms, last_seq = 0, 0, 0, 0
if last[1] then
  last_ms, last_seq = string.match(last[1][1], '^(%d+)-(%d+)$')
  total, bytes = number(last[1], 'total', 4), number(last[1], 'bytes', 6)
  -- An entry that no append has written: the totals are those of the append before.
  for _, row in ipairs(total and {{}} or redis.call('XREVRANGE', KEYS[1], '+', '-')) do
    total, bytes = number(row, 'total', 4), number(row, 'bytes', 6)
    if total then break end
  end
  total, bytes = total or 0, bytes or 0
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
local none = {NO_TIME}
local function advance(state, newest, own, records, furthest, delay)
  local mark, ahead, since = tonumber(state), none, ms
  if not mark then
    mark, ahead, since = string.match(state, '^(-?%d+):(%d+):(%d+)$')
    mark, ahead, since = tonumber(mark), tonumber(ahead), tonumber(since)
  end
  if newest > ms + furthest then return state, '{NO_TIME}' end
  local reached, clock = none, ms + delay
  if ahead == none or newest < ahead - delay then
    ahead, since = none, ms
  elseif ahead <= clock or ms - since >= delay then
    reached, mark, ahead, since = ahead, math.max(mark, ahead), none, ms
  end
  local near, limit = mark + delay, clock
  if mark > clock then limit = near end
  local alone = mark > none and records < {CONFIRMING_RECORDS} and near < newest
  if not own and (alone or newest > limit) then
    ahead = math.max(ahead, newest)
  else
    mark, reached = math.max(mark, newest), math.max(reached, newest)
  end
  reached = string.format('%.0f', reached)
  if ahead <= mark then return string.format('%.0f', mark), reached end
  return string.format('%.0f:%.0f:%.0f', mark, ahead, since), reached
end
local records, answer = 0, {{'ok', id}}
for i = 6, #KEYS do
  local at = 7 + (i - 6) * 6
  local old, reached = redis.call('HGET', KEYS[3], ARGV[at]) or '{NO_TIME}', ARGV[at + 3]
  local before, new, mark, newest = old, old, tonumber(old), tonumber(reached)
  local furthest, delay = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  -- Almost every append: nothing waits, and nothing is ahead.
  if mark and newest and newest <= mark + delay and newest <= ms + math.min(delay, furthest) then
    if newest > mark then new = reached end
  else
    new, reached = advance(old, newest or ms, not newest, tonumber(ARGV[at + 1]), furthest, delay)
    before = string.match(old, '^-?%d+')
    if before == '{NO_TIME}' then before = '' end
  end
  local count = redis.call('HINCRBY', KEYS[5], ARGV[at], ARGV[at + 1])
  redis.call('XADD', KEYS[i], id, 'n', ARGV[at + 1], 'b', ARGV[at + 2], 'x', reached,
    'm', before, 'c', count)
  if new ~= old then redis.call('HSET', KEYS[3], ARGV[at], new) end
  records = records + tonumber(ARGV[at + 1])
  answer[#answer + 1] = before
  answer[#answer + 1] = reached
end
redis.call('XADD', KEYS[1], id, 'n', records, 'total', string.format('%.0f', total + records),
  'bytes', string.format('%.0f', bytes + ARGV[4]))
if sequence then
  local highest = ARGV[3]
  if high and high > sequence then highest = string.format('%.0f', high) end
  redis.call('HSET', KEYS[4], place, ARGV[3] .. ':' .. id .. ':' .. ARGV[5], 'high', highest)
  local seconds = {_REMEMBER_S}
  if ARGV[6] ~= '' then
    redis.call('HSET', KEYS[4], 'note', ARGV[6])
    seconds = {_REMEMBER_NOTE_S}
  end
  redis.call('EXPIRE', KEYS[4], seconds)
end
return answer
"""

# KEYS: index, committed, newest; ARGV: position, what the key of a stream begins with.
# The last committed append stays in the index, as the next one continues its totals. All streams
# with appends are trimmed, also those without readers. The newest blocks of each stream stay, up to
# KEPT_RECORDS and KEPT_BLOCKS, for the preview of queries. Trimming is first: Redis accepts it
# without memory, and then accepts the other writes of the script.
COMMIT: Final = f"""{NUMBER}
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
if found[1] and number(found[1], 'total', 4) then
  total, bytes = found[1][2][4], found[1][2][6]
end
redis.call('XTRIM', KEYS[1], 'MINID', '=', ARGV[1])
local function earlier(position, other)
  local a_ms, a_seq = parts(position)
  local b_ms, b_seq = parts(other)
  return a_ms < b_ms or (a_ms == b_ms and a_seq < b_seq)
end
for _, stream in ipairs(redis.call('HKEYS', KEYS[3])) do
  local key = ARGV[2] .. stream
  if redis.call('XLEN', key) > 1 then
    local first, records = ARGV[1], 0
    for _, row in ipairs(redis.call('XREVRANGE', key, '+', '-', 'COUNT', {KEPT_BLOCKS})) do
      if records >= {KEPT_RECORDS} then break end
      records = records + (number(row, 'n', 2) or 0)
      if earlier(row[1], first) then first = row[1] end
    end
    redis.call('XTRIM', key, 'MINID', '=', first)
  end
end
redis.call('HSET', KEYS[2], 'position', ARGV[1], 'total', total, 'bytes', bytes)
"""
