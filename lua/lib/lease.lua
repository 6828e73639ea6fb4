-- No lease is granted for so long, nor was the clock set back by so much: somebody else wrote when it ends.
local LATE_LEASE_MS = 172800000

-- No lease of the queue ends before the first one does. One that would end too late ends now.
local function bound_leases()
  local first = at_score(call('ZRANGE', KEYS[6], 0, 0, 'WITHSCORES')[2])
  if first and first > now + LATE_LEASE_MS then first = now end
  set('lo', first and num(first) or '')
end
