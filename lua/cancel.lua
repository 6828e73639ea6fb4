-- Takes waiting jobs away: nothing of them remains but a counter.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, then ids
-- Returns: ok, empty, a letter per id: o cancelled, l leased, d dead, g gone
-- Repeat: g
-- Calls: 7 (+1 state, +1 exp, +1 big); 4 if none waits
-- First write: ZREM (runs at maxmemory)
local ids = {unpack(ARGV, 2)}
read_meta('big', 'exp', 'cancelled')
local waiting, states = call('ZMSCORE', KEYS[5], unpack(ids)), call('HMGET', KEYS[7], unpack(ids))
local letters, seen = {}, {}
for i, id in ipairs(ids) do
  local s = read_state(states[i])
  if seen[id] then
    letters[i] = 'g'
  elseif waiting[i] then
    letters[i], seen[id] = 'o', true
    leaves('due', id)
    vanishes(id, s)
    count('cancelled', 1)
  elseif s then
    letters[i] = s.phase == 'X' and 'd' or 'l'
  else
    letters[i] = 'g'
  end
end
apply()
write_meta()
return {'ok', '', table.concat(letters)}
