local unpack = unpack or table.unpack
local call = redis.call

local tag = string.sub(KEYS[1], 1, -7)
local queue = string.sub(KEYS[3], #tag + 1, -6)
local us, now

local function num(x)
  return string.format('%.0f', x)
end

local function has(flags, bit)
  return math.floor(flags / bit) % 2 == 1
end

local function clock()
  if ARGV[1] ~= '' then
    us = tonumber(ARGV[1])
  else
    local t = call('TIME')
    us = t[1] * 1000000 + t[2]
  end
  now = math.floor(us / 1000)
end

-- A delay counts from the call and rounds up; no delay means now.
local function after(delay_ms)
  if delay_ms == 0 then return now end
  return math.ceil(us / 1000) + delay_ms
end
