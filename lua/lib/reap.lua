-- Ended leases go back to due as of the lease's end, or to dead when their attempts are used up.
local function reap(limit)
  local lo = whole(meta.lo)
  if not lo or lo > now then return 0 end
  local ended = call('ZRANGEBYSCORE', KEYS[6], '-inf', num(now), 'WITHSCORES', 'LIMIT', 0, limit)
  local ids = {}
  for i = 1, #ended, 2 do ids[#ids + 1] = ended[i] end
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
      flag(s, BY_VERDICT, false)
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
  local first = call('ZRANGE', KEYS[6], 0, 0, 'WITHSCORES')[2]
  set('lo', first and num(at_score(first)) or '')
  return #ids
end
