-- Ended leases go back to due as of the lease's end, or to dead when their attempts are used up. One that would end too late
-- ends now.
local function reap(limit)
  local lo, late = whole(meta.lo), now + LATE_LEASE_MS
  if not lo or lo > now and lo <= late then return 0 end
  local ended = call('ZRANGEBYSCORE', KEYS[6], '-inf', num(now), 'WITHSCORES', 'LIMIT', 0, limit)
  local ids = {}
  for i = 1, #ended, 2 do ids[#ids + 1] = ended[i] end
  if #ids < limit then
    local endless = call('ZRANGEBYSCORE', KEYS[6], '(' .. num(late), '+inf', 'LIMIT', 0, limit - #ids)
    for _, id in ipairs(endless) do
      ids[#ids + 1], ended[#ended + 1], ended[#ended + 2] = id, id, num(now)
    end
  end
  local states = #ids > 0 and call('HMGET', KEYS[7], unpack(ids)) or {}
  for i, id in ipairs(ids) do
    local s, at = read_state(states[i]), at_score(ended[2 * i])
    leaves('leased', id)
    if not s then
      enters('due', id, at)
      arrives(at)
    elseif s.broken then
      s.due = at
      is_unreadable(id, s, 'broken state')
    elseif has(s.flags, EXPIRED) then
      expires(id, s)
    elseif s.attempts >= s.max then
      s.verdict = 0
      dies(id, s, 'lease ended')
    else
      if has(s.flags, LOST_DELAY) then at = at + tonumber(s.ext) end
      s.phase, s.due = 'E', at
      keeps(id, s)
      enters('due', id, at)
      arrives(at)
    end
  end
  count('ended', #ids)
  apply()
  bound_leases()
  return #ids
end
