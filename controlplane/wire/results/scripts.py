"""The Lua scripts of the result store: each is one step that a reader sees in whole or not at all.

Of the hash of rows, the fields that are no member: `batch` is the newest batch that wrote, `final`
the newest start (ms) of windows that take no change any more, `final_at` since when (ms), `ignored`
how many rows came for such windows, `fed` the number of the feed's newest entry, `form:<number>`
the name of a form.
"""

from typing import Final

# Redis hands at most some thousand values to one call.
_CHUNK: Final = 3_000

# Decodes a member's start: 8 bytes, of which Lua's numbers hold 53 bits.
_START_OF: Final = """
local function start_of(member)
    local high, low = struct.unpack('>I4I4', member)
    return (high - 2147483648) * 4294967296 + low
end
"""

# KEYS: order of windows, rows, feed, queries with windows.
# ARGV: batch, smallest start, what the feed gets ('' for none), the feed's length, the query, the
# number of forms, number and name of each, then a member with its section and the row of each.
WRITE: Final = (
    _START_OF
    + f"""
local batch, forms, ignored = tonumber(ARGV[1]), tonumber(ARGV[6]), 0
local about = redis.call('HMGET', KEYS[2], 'batch', 'final')
local newest, final = tonumber(about[1] or -1), tonumber(about[2])
local careful = batch < newest or (final and tonumber(ARGV[2]) <= final)
local first = 7 + forms * 2
local rows, members = {{}}, {{}}
local function flush(least)
    if #rows > least then
        redis.call('HSET', KEYS[2], unpack(rows))
        rows = {{}}
    end
    if #members > least then
        redis.call('ZADD', KEYS[1], unpack(members))
        members = {{}}
    end
end
local function is_taken(field)
    if final and start_of(field) <= final then
        ignored = ignored + 1
        return false
    end
    if batch < newest then
        local there = redis.call('HGET', KEYS[2], field)
        if there then
            local high, low = struct.unpack('>I4I4', there)
            return high * 4294967296 + low <= batch
        end
    end
    return true
end
for at = first, #ARGV, 2 do
    local field = ARGV[at]
    if not careful or is_taken(field) then
        rows[#rows + 1] = field
        rows[#rows + 1] = ARGV[at + 1]
        if string.byte(field, -1) == 115 then
            members[#members + 1] = 0
            members[#members + 1] = string.sub(field, 1, -2)
        end
        flush({_CHUNK})
    end
end
if #members > 0 then redis.call('SADD', KEYS[4], ARGV[5]) end
flush(0)
about = {{'batch', math.max(batch, newest)}}
for at = 7, first - 1 do
    about[#about + 1] = ARGV[at]
end
redis.call('HSET', KEYS[2], unpack(about))
if ignored > 0 then
    redis.call('HINCRBY', KEYS[2], 'ignored', ignored)
end
if ARGV[3] ~= '' then
    local number = redis.call('HINCRBY', KEYS[2], 'fed', 1)
    redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[4], number .. '-0', 'batch', batch,
               'places', ARGV[3])
    redis.call('EXPIRE', KEYS[3], 600)
end
return ignored
"""
)

# Reads whole windows from one end of a range.
# KEYS: order of windows, rows. ARGV: least and most member (as ZRANGEBYLEX takes them), '1' for
# newest first, windows at most, bytes at most, the sections, and the key ('' for all).
# Returns final, final_at, where the next page begins ('' for none), the members, and the rows of
# each section.
PAGE: Final = """
local least, most, back = ARGV[1], ARGV[2], ARGV[3] == '1'
local limit, room, sections, key = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7]
local found, rows, next = {}, {}, ''
for at = 1, #sections do rows[at] = {} end

local function range(low, high, count)
    if back then
        return redis.call('ZREVRANGEBYLEX', KEYS[1], high, low, 'LIMIT', 0, count)
    end
    return redis.call('ZRANGEBYLEX', KEYS[1], low, high, 'LIMIT', 0, count)
end

local function take(members)
    for first = 1, #members, 1000 do
        local past = math.min(first + 999, #members)
        for at = 1, #sections do
            local section, fields = string.sub(sections, at, at), {}
            for place = first, past do table.insert(fields, members[place] .. section) end
            for _, value in ipairs(redis.call('HMGET', KEYS[2], unpack(fields))) do
                room = room - #(value or '')
                table.insert(rows[at], value or '')
            end
        end
        for place = first, past do table.insert(found, members[place]) end
    end
end

local function all_keys()
    local windows, last = 0, false
    while true do
        local members, taken = range(least, most, math.min(500, (limit - windows) * 2 + 1)), {}
        for _, member in ipairs(members) do
            local place = string.sub(member, 1, -17)
            if place ~= last then
                if windows == limit or room <= 0 then
                    take(taken)
                    return last
                end
                windows, last = windows + 1, place
            end
            table.insert(taken, member)
        end
        take(taken)
        if #members == 0 then return '' end
        if back then most = '(' .. members[#members] else least = '(' .. members[#members] end
    end
end

-- The 8 bytes behind these: where the next start begins.
local function behind(start)
    for at = 8, 1, -1 do
        local byte = string.byte(start, at)
        if byte < 255 then
            local zeros = string.rep('\\0', 8 - at)
            return string.sub(start, 1, at - 1) .. string.char(byte + 1) .. zeros
        end
    end
    return string.rep('\\255', 9)
end

-- From window to window: of each only this key's parts are looked at.
local function one_key()
    local last_start = ''
    local windows, steps = 0, 0
    while true do
        local member = range(least, most, 1)[1]
        if not member then return '' end
        local start = string.sub(member, 1, 8)
        if windows == limit or room <= 0 or steps == 5000 then return last_start end
        local place = start .. key
        local parts = redis.call('ZRANGEBYLEX', KEYS[1], '[' .. place,
                                 '[' .. place .. string.rep('\\255', 17))
        if #parts > 0 then
            windows = windows + 1
            take(parts)
        end
        last_start, steps = start, steps + 1
        if back then most = '(' .. start else least = '[' .. behind(start) end
    end
end

if key == '' then next = all_keys() else next = one_key() end
local about = redis.call('HMGET', KEYS[2], 'final', 'final_at')
return {about[1], about[2], next, found, rows}
"""

# KEYS: order of windows, rows. ARGV: newest start of windows that take no change from now on, and
# since when they are final ('' for not). Never backwards, and not before all from the time before
# have left: so each window has the moment that it became final.
# Returns how many members start until then (some, not all), -1 where others have to leave first.
FREEZE: Final = (
    _START_OF
    + """
local final = tonumber(redis.call('HGET', KEYS[2], 'final'))
local first = redis.call('ZRANGEBYLEX', KEYS[1], '-', '+', 'LIMIT', 0, 1)[1]
local start = first and start_of(first)
if final and start and start <= final then return -1 end
if not final or tonumber(ARGV[1]) > final then
    final = tonumber(ARGV[1])
    redis.call('HSET', KEYS[2], 'final', ARGV[1], 'final_at', ARGV[2])
end
return start and start <= final and 1 or 0
"""
)

# KEYS: order of windows, rows, queries with windows. ARGV: the query, all sections, then members:
# takes them out.
REMOVE: Final = f"""
local members, fields = {{}}, {{}}
for at = 3, #ARGV do
    members[#members + 1] = ARGV[at]
    for section in string.gmatch(ARGV[2], '.') do
        fields[#fields + 1] = ARGV[at] .. section
    end
    if #fields > {_CHUNK} or at == #ARGV then
        redis.call('ZREM', KEYS[1], unpack(members))
        redis.call('HDEL', KEYS[2], unpack(fields))
        members, fields = {{}}, {{}}
    end
end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SREM', KEYS[3], ARGV[1]) end
return 1
"""

# KEYS: followers, rows. ARGV: query, now, until when (ms), followed queries at most.
# Returns the number of the feed's newest entry, -1 where too many others are followed.
FOLLOW: Final = """
local known = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not known or tonumber(known) < tonumber(ARGV[2]) then
    redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[2])
    if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then return -1 end
    -- A number without an entry: what changed while nobody followed.
    redis.call('HINCRBY', KEYS[2], 'fed', 1)
end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
return tonumber(redis.call('HGET', KEYS[2], 'fed') or 0)
"""

# KEYS: feed, rows. ARGV: batch, the feed's length. An entry without windows.
NOTE: Final = """
local number = redis.call('HINCRBY', KEYS[2], 'fed', 1)
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], number .. '-0', 'batch', ARGV[1])
redis.call('EXPIRE', KEYS[1], 600)
return number
"""
