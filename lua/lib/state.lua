-- phase(1) fence(16) attempts(4) max(4) deliveries(4) flags(2, hex) due(13) extlen(2) extension reason
local TTL, LOST_DELAY, BIG, EXPIRED, BY_VERDICT = 1, 2, 4, 8, 16

local function read_state(text)
  if not text then return nil end
  local extlen = tonumber(string.sub(text, 45, 46))
  return {
    phase = string.sub(text, 1, 1),
    fence = tonumber(string.sub(text, 2, 17)),
    attempts = tonumber(string.sub(text, 18, 21)),
    max = tonumber(string.sub(text, 22, 25)),
    deliveries = tonumber(string.sub(text, 26, 29)),
    flags = tonumber(string.sub(text, 30, 31), 16),
    due = tonumber(string.sub(text, 32, 44)),
    ext = string.sub(text, 47, 46 + extlen),
    reason = string.sub(text, 47 + extlen),
  }
end

local function state_text(s)
  return string.format('%s%016.0f%04d%04d%04d%02x%013.0f%02d', s.phase, s.fence, s.attempts, s.max,
    s.deliveries, s.flags, s.due, #s.ext) .. s.ext .. s.reason
end

local function flag(s, bit, on)
  local is = has(s.flags, bit)
  if on and not is then s.flags = s.flags + bit elseif is and not on then s.flags = s.flags - bit end
end
