-- Dead letters go for good.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 ids or all, 3 T: only those dead at or before this time (empty: now), 4 limit, then ids
-- Returns: ok, us, T, how many went, how many are left, a letter per id: o gone, g not dead
--          Or: gate, us, what newer scripts are needed for
-- Repeat: with the same T it removes only what it meant the first time
-- Calls: 10 (+1 big); 5 if none is meant
-- First write: ZREM (runs at maxmemory)
clock()
read_meta('purged', 'big', 'exp')
if meta.gate then return gated() end
local ids, states, letters, t = dead_letters()
for i, id in ipairs(ids) do
  leaves('dead', id)
  vanishes(id, read_state(states[i]))
end
count('purged', #ids)
apply()
write_meta()
return {'ok', num(us), num(t), num(#ids), num(call('ZCARD', KEYS[8])), letters}
