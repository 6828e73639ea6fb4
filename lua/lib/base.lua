local unpack = unpack or table.unpack
local MOST, LATEST_MS = 9007199254740991, 9999999999999

local tag = string.sub(KEYS[1], 1, -7)
local queue = string.sub(KEYS[3], #tag + 1, -6)
local only_reads = false
local us, now

local function num(x)
  return string.format('%.0f', x)
end

local function has(flags, bit)
  return math.floor(flags / bit) % 2 == 1
end

local function failed(answer)
  return type(answer) == 'table' and answer.err
end

-- The clock of tests, or the server's.
local function read_clock()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- What the queue still knows of itself where its meta was of another type: how many jobs it has, and that somebody is to
-- look for ended leases and to be woken.
local function rebuild_meta()
  local function size(i)
    local n = redis.pcall('ZCARD', KEYS[i])
    return failed(n) and 0 or n
  end
  redis.call('HSET', KEYS[3], 'lo', '0', 'w', '1', 'exp', num(size(9)), 'big', num(size(11)),
    'published', num(size(5) + size(6) + size(8)))
end

-- Every queue is tended at once where the agenda was of another type.
local function rebuild_agenda()
  local names = redis.pcall('HSCAN', KEYS[2], '0', 'COUNT', '1000')
  for i = 1, failed(names) and 0 or #names[2], 2 do
    redis.call('ZADD', KEYS[1], '0', 'q' .. string.format('%s', names[2][i]))
  end
end

-- A key of another type is somebody else's: it keeps its value under a name that begins with broken, and is counted.
local function set_aside(key)
  redis.call('RENAME', key, tag .. 'broken:' .. num(us or read_clock()) .. ':' .. string.sub(key, #tag + 1))
  if key == KEYS[1] then rebuild_agenda() elseif key == KEYS[3] and queue ~= '' then rebuild_meta() end
end

-- Calls Redis. Who only reads takes a key of another type for empty, who writes sets it aside first. All other errors are
-- raised by calling again.
local function call(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  if not failed(answer) then return answer end
  if string.find(answer.err, 'WRONGTYPE', 1, true) then
    if only_reads then return redis.call(command, tag .. 'none', ...) end
    set_aside(key)
    if queue ~= '' then redis.pcall('HINCRBY', KEYS[3], 'broken', '1') end
  end
  return redis.call(command, key, ...)
end

local function clock()
  us = us or read_clock()
  now = math.floor(us / 1000)
end

-- A delay counts from the call and rounds up; no delay means now.
local function after(delay_ms)
  if delay_ms == 0 then return now end
  return math.ceil(us / 1000) + delay_ms
end

-- A number as scripts write them; any other text is none.
local function whole(text)
  local n = text and string.find(text, '^%d+$') and tonumber(text)
  return n and n <= MOST and num(n) == text and n or nil
end

-- A score as a time: whole, and one that a state can hold.
local function at_score(text)
  local n = tonumber(text or '')
  if not n then return text and LATEST_MS or nil end
  if n ~= n then return LATEST_MS end
  return math.max(math.min(math.ceil(n), LATEST_MS), 0)
end
