-- Takes waiting jobs away: nothing of them remains but a counter.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 session, 3 sequence, then ids
-- Returns: ok | again, us, a letter per id: o cancelled, l leased, d dead, g gone. Or: superseded, us
--          Or: gate, us, what newer scripts are needed for
-- Repeat: the same sequence answers what it answered first; a lower one does nothing.
--         Of a queue that is not born nothing is remembered: a repeat looks again
-- Calls: 8 (+1 state, +1 exp, +1 big, +3 sweep); 7 if none waits, 5 if there is no queue, 3 again
-- First write: ZREM (runs at maxmemory)
clock()
read_meta(ARGV[2], 'born', 'sessions', 'sweep', 'big', 'exp', 'cancelled')
if meta.gate then return gated() end
local session, past = recall('[oldgx]+[ %d-]*')
if session == 'superseded' or past and past[4] then return {'superseded', num(us)} end
if session == 'again' then return {'again', num(us), past[3]} end

local ids = {unpack(ARGV, 4)}
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
letters = table.concat(letters)
apply()
if meta.born then
  begin_with_removal()
  remember(0, letters)
end
write_meta()
sweep_sessions()
return {'ok', num(us), letters}
