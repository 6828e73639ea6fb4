-- Dead letters become due at once: attempts start again, without a TTL.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 ids or all, 3 T: only those dead at or before this time (empty: now), 4 limit, then ids
-- Returns: ok, us, T, how many moved, how many are left, a letter per id: o moved, g not dead
--          Or: gate, us, what newer scripts are needed for
-- Repeat: with the same T it moves only what it meant the first time
-- Calls: 10 (+2 wake, +1 agenda); 5 if none is meant
-- First write: ZREM (runs at maxmemory)
clock()
read_meta('retention', 'forward', 'paused', 'w', 'requeued')
if meta.gate then return gated() end
local ids, states, letters, t = dead_letters()
for i, id in ipairs(ids) do
  local s = read_state(states[i])
  local broken = s and s.broken
  if not s or broken then s = never_delivered(now) end
  flag(s, BIG, broken or has(s.flags, BIG))
  s.phase = s.verdict > 0 and 'W' or 'E'
  s.attempts, s.due = 0, now
  leaves('dead', id)
  keeps(id, s)
  enters('due', id, now)
  arrives(now)
end
count('requeued', #ids)
apply()
lower_agenda(soon)
write_meta()
announce()
return {'ok', num(us), num(t), num(#ids), num(call('ZCARD', KEYS[8])), letters}
