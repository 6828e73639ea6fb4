-- phase(1) fence(16) attempts(4) verdict(1) max(3) deliveries(4) flags(2, hex) due(13) extlen(2) extension reason
local TTL, LOST_DELAY, BIG, EXPIRED, GATED = 1, 2, 4, 8, 32
local STATE = '^[LWEX]' .. string.rep('%d', 20) .. '[0-4]' .. string.rep('%d', 7) .. '%x%x' .. string.rep('%d', 15)

-- Of a text that cannot be read nothing is known: the job may have all that a job can have.
local function broken_state()
  return {
    phase = 'W', fence = 0, attempts = 0, verdict = 0, max = 0, deliveries = 0, flags = TTL + BIG, due = 0, ext = '',
    reason = '', broken = true,
  }
end

local function read_state(text)
  if not text then return nil end
  if not string.find(text, STATE) then return broken_state() end
  local extlen = tonumber(string.sub(text, 45, 46))
  local s = {
    phase = string.sub(text, 1, 1),
    fence = tonumber(string.sub(text, 2, 17)),
    attempts = tonumber(string.sub(text, 18, 21)),
    verdict = tonumber(string.sub(text, 22, 22)),
    max = tonumber(string.sub(text, 23, 25)),
    deliveries = tonumber(string.sub(text, 26, 29)),
    flags = tonumber(string.sub(text, 30, 31), 16),
    due = tonumber(string.sub(text, 32, 44)),
    ext = string.sub(text, 47, 46 + extlen),
    reason = string.sub(text, 47 + extlen),
  }
  if #s.ext < extlen or s.fence > MOST then return broken_state() end
  if has(s.flags, LOST_DELAY) and not string.find(s.ext, '^%d%d%d%d%d%d%d%d$') then return broken_state() end
  return s
end

local function state_text(s)
  return string.format('%s%016.0f%04d%d%03d%04d%02x%013.0f%02d', s.phase, s.fence, s.attempts, s.verdict, s.max,
    s.deliveries, s.flags, s.due, #s.ext) .. s.ext .. s.reason
end

local function flag(s, bit, on)
  local is = has(s.flags, bit)
  if on and not is then s.flags = s.flags + bit elseif is and not on then s.flags = s.flags - bit end
end
