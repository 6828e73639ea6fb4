local KEEP_SESSIONS, SWEEP_LEAST, SWEEP_MOST = 64, 500, 1500
local SWEEP_STEP_MS, SWEEP_MS, SWEEP_LATE_MS = 1000, 60000, 10000

-- Drops sessions that were kept long enough: a part of meta a second, more where nobody came for longer, and a rest of a
-- minute when all was seen. The order of parts is Redis's: sweep says when the next one is, and where. Comes after all
-- other writes.
local function sweep_sessions()
  if meta_num('sessions') <= KEEP_SESSIONS then return end
  local at, cursor = string.match(meta.sweep or '', '^(%d+) (%d+)$')
  at = whole(at)
  if not at or at > now + SWEEP_MS or #cursor > 19 then at, cursor = now, '0' end
  if at > now then return end
  local most = math.min(math.max(math.floor((now - at) / 10), SWEEP_LEAST), SWEEP_MOST)
  local page = call('HSCAN', KEYS[3], cursor, 'COUNT', num(most))
  local fields, old = page[2], {}
  for i = 1, #fields, 2 do
    if string.find(fields[i], '^s...........[prc]%d+$') and fields[i] ~= ARGV[2] then
      local kept = tonumber(string.match(fields[i + 1], '^%d+ (%d+) ') or '')
      if not kept or kept + SWEEP_LATE_MS <= now then old[#old + 1] = fields[i] end
    end
  end
  local dropped = 0
  for i = 1, #old, 1000 do
    dropped = dropped + call('HDEL', KEYS[3], unpack(old, i, math.min(i + 999, #old)))
  end
  local rest = page[1] == '0' and SWEEP_MS or SWEEP_STEP_MS
  call('HSET', KEYS[3], 'sweep', string.format('%.0f %s', now + rest, page[1]),
    'sessions', num(math.max(meta_num('sessions') - dropped, 0)))
end
