"""The Lua scripts of the result store: each is atomic for readers.

Fields of the hash of rows beside members: `batch` is the newest batch that wrote, `final` the
newest start (ms) of frozen windows, `final_at` since when they are final (ms), `ignored` the number
of rows for such windows, `fed` the number of the feed's newest entry, `form:<number>` the name of a
state schema; `moved` the last place that has left for the archive, and `moved_to` the newest start
up to which all have left. A reference to a block begins with the first and the last start in it
(`blocks.Ref`).
"""

from typing import Final

# Redis takes at most some thousand values in one call.
_CHUNK: Final = 3_000

# Decodes a member's start: 8 bytes, of which Lua's numbers hold 53 bits.
_START_OF: Final = """
local function start_of(member)
    local high, low = struct.unpack('>I4I4', member)
    return (high - 2147483648) * 4294967296 + low
end
"""

# KEYS: block. ARGV: its bytes, for how long (s) it stays while nothing refers to it.
PUT: Final = """
redis.call('HSETNX', KEYS[1], 'data', ARGV[1])
if redis.call('HEXISTS', KEYS[1], 'refs') == 0 then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
"""

# KEYS: order of windows, rows, feed, queries with windows, references, then the blocks. ARGV:
# batch, smallest start, what the feed gets ('' for none), the feed's length, the query, the number
# of state schemas, number and name of each, name and reference of each block, then a member with
# its section and the row of each: an empty row takes all rows of its member out.
WRITE: Final = (
    _START_OF
    + f"""
local batch, forms, ignored = tonumber(ARGV[1]), tonumber(ARGV[6]), 0
local about = redis.call('HMGET', KEYS[2], 'batch', 'final')
local newest, final = tonumber(about[1] or -1), tonumber(about[2])
local careful = batch < newest or (final and tonumber(ARGV[2]) <= final)
local blocks = 7 + forms * 2
local first = blocks + (#KEYS - 5) * 2
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
for at = 6, #KEYS do
    local id, ref = ARGV[blocks + (at - 6) * 2], ARGV[blocks + (at - 6) * 2 + 1]
    local cut = final and start_of(ref) <= final
    if cut and start_of(string.sub(ref, 9)) <= final then
        ignored = ignored + 1
    elseif redis.call('HSETNX', KEYS[5], id, ref .. (cut and about[2] or '')) == 1 then
        redis.call('HINCRBY', KEYS[at], 'refs', 1)
        redis.call('PERSIST', KEYS[at])
        redis.call('SADD', KEYS[4], ARGV[5])
    end
end
for at = first, #ARGV, 2 do
    local field = ARGV[at]
    if ARGV[at + 1] == '' then
        if not careful or is_taken(field) then
            local member = string.sub(field, 1, -2)
            redis.call('ZREM', KEYS[1], member)
            redis.call('HDEL', KEYS[2], member .. 's', member .. 'c', member .. 'b')
        end
    elseif not careful or is_taken(field) then
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
for at = 7, blocks - 1 do
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

# Returns as many whole blocks as a page may need, from one end of the range. References are in the
# order of this end; after `edge` there are blocks that were omitted. All windows at the first start
# are included.
_BLOCKS: Final = """
local function overlapping(low, high)
    local found, all = {}, redis.call('HGETALL', KEYS[3])
    for at = 1, #all, 2 do
        local from, to = start_of(all[at + 1]), start_of(string.sub(all[at + 1], 9))
        if to >= low and from <= high then
            found[#found + 1] = {from, to, all[at], all[at + 1]}
        end
    end
    if back then
        table.sort(found, function(one, two)
            if one[2] == two[2] then return one[3] > two[3] end
            return one[2] > two[2]
        end)
    else
        table.sort(found, function(one, two)
            if one[1] == two[1] then return one[3] < two[3] end
            return one[1] < two[1]
        end)
    end
    return found
end

-- How many windows the taken blocks have before `edge`, the near end of the next one.
local function before(taken, edge)
    local count = 0
    for _, one in ipairs(taken) do
        if (back and one[1] > edge) or (not back and one[2] < edge) then
            count = count + struct.unpack('>I4', string.sub(one[4], 17))
        end
    end
    return count
end

local function take_blocks(low, high)
    local all, taken, out, size, edge = overlapping(low, high), {}, {}, 0, ''
    for _, one in ipairs(all) do
        local near = back and one[2] or one[1]
        local top = back and math.min(high, all[1][2]) or math.max(low, all[1][1])
        local past = (back and near < top) or (not back and near > top)
        if past and (size >= bytes or before(taken, near) >= limit) then
            edge = string.format('%.0f', near)
            break
        end
        local data = redis.call('HGET', ARGV[8] .. hex(one[3]), 'data') or ''
        size = size + #data
        taken[#taken + 1] = one
        for _, value in ipairs({one[3], one[4], data}) do out[#out + 1] = value end
    end
    return out, edge
end
"""

_HEX: Final = """
local function hex(name)
    local function digits(one) return string.format('%02x', string.byte(one)) end
    return (string.gsub(name, '.', digits))
end
"""

# Reads whole windows from one end of a range.
# KEYS: order of windows, rows, references. ARGV: least and most member (as ZRANGEBYLEX takes them),
# '1' for newest first, windows at most, bytes at most, the sections, the key ('' for all), what the
# keys of blocks begin with, least and most start.
# Returns final, final_at, where the next page begins ('' for none), the members, the rows of each
# section, name, reference and bytes of each block, the start where blocks were left out ('' for
# none), the last place and the newest start that have left, and whether there is any block.
PAGE: Final = (
    _START_OF
    + _HEX
    + """
local least, most, back = ARGV[1], ARGV[2], ARGV[3] == '1'
local limit, room, sections, key = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7]
local bytes = room
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
"""
    + _BLOCKS
    + """
local blocks, edge = take_blocks(tonumber(ARGV[9]), tonumber(ARGV[10]))
local about = redis.call('HMGET', KEYS[2], 'final', 'final_at', 'moved', 'moved_to')
return {about[1], about[2], next, found, rows, blocks, edge, about[3], about[4],
        redis.call('EXISTS', KEYS[3])}
"""
)

# KEYS: order of windows, rows, references. ARGV: newest start of windows that take no change from
# now on, and since when they are final ('' for not). Never decreasing, and not before all from the
# time before have left: so each window has the moment that it became final.
# Returns how many members start until then (some, not all), -1 where others have to leave first.
FREEZE: Final = (
    _START_OF
    + """
local final = tonumber(redis.call('HGET', KEYS[2], 'final'))
local first = redis.call('ZRANGEBYLEX', KEYS[1], '-', '+', 'LIMIT', 0, 1)[1]
local start = first and start_of(first)
local moved = tonumber(redis.call('HGET', KEYS[2], 'moved_to'))
for _, ref in ipairs(redis.call('HVALS', KEYS[3])) do
    local from = start_of(ref)
    -- Of a block that has left in part, the rest begins behind what has left.
    if moved and from <= moved then from = moved + 1 end
    if not start or from < start then start = from end
end
if final and start and start <= final then return -1 end
if not final or tonumber(ARGV[1]) > final then
    final = tonumber(ARGV[1])
    redis.call('HSET', KEYS[2], 'final', ARGV[1], 'final_at', ARGV[2])
end
return start and start <= final and 1 or 0
"""
)

# Removes members. KEYS: order of windows, rows, queries with windows, references. ARGV: the query,
# all sections, the last place that has left ('' for no change), then members.
REMOVE: Final = f"""
local members, fields = {{}}, {{}}
if ARGV[3] ~= '' then redis.call('HSET', KEYS[2], 'moved', ARGV[3]) end
for at = 4, #ARGV do
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
if redis.call('EXISTS', KEYS[1], KEYS[4]) == 0 then redis.call('SREM', KEYS[3], ARGV[1]) end
return 1
"""

# Releases the blocks of a query of which all windows have left.
# KEYS: order of windows, rows, queries with windows, references. ARGV: the query, what the keys of
# blocks begin with, the newest start that has left ('' for all blocks).
RELEASE: Final = (
    _START_OF
    + _HEX
    + """
local moved = tonumber(ARGV[3])
if moved then redis.call('HSET', KEYS[2], 'moved_to', ARGV[3]) end
local all, rows = redis.call('HGETALL', KEYS[4]), 0
for at = 1, #all, 2 do
    if not moved or start_of(string.sub(all[at + 1], 9)) <= moved then
        redis.call('HDEL', KEYS[4], all[at])
        rows = rows + struct.unpack('>I4', string.sub(all[at + 1], 17))
        local block = ARGV[2] .. hex(all[at])
        if redis.call('HINCRBY', block, 'refs', -1) <= 0 then redis.call('DEL', block) end
    end
end
if redis.call('EXISTS', KEYS[1], KEYS[4]) == 0 then redis.call('SREM', KEYS[3], ARGV[1]) end
return rows
"""
)

# KEYS: followers, rows. ARGV: query, now, until when (ms), followed queries at most.
# Returns the number of the feed's newest entry, -1 if too many others are followed.
FOLLOW: Final = """
local known = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not known or tonumber(known) < tonumber(ARGV[2]) then
    redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[2])
    if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then return -1 end
    -- A number without an entry: changes without a follower.
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
