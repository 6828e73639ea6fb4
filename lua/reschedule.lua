-- Gives waiting jobs another due time.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 session, 3 sequence, then per job: id, when (+delay ms, or unix ms)
-- Returns: ok | again, us, a letter per job: o moved, l leased, d dead, g gone, x would expire before; the due times.
--          Or: superseded, us
--          Or: gate, us, what newer scripts are needed for
-- Repeat: the same sequence answers what it answered first; a lower one does nothing.
--         Of a queue that is not born nothing is remembered: a repeat looks again
-- Calls: 9 (+1 exp, +2 wake, +1 head, +3 sweep); 7 if none waits, 5 if there is no queue, 3 again
-- First write: ZREM (runs at maxmemory)

-- The session holds the letters, then of each due time how much later it is than the one before.
local function moved_before(past)
  local dues, due = {}, 0
  for i = 4, #past do
    due = due + tonumber(past[i])
    dues[#dues + 1] = num(due)
  end
  return {'again', num(us), past[3], dues}
end

clock()
read_meta(ARGV[2], 'born', 'sessions', 'sweep', 'exp', 'w', 'paused', 'forward')
if meta.gate then return gated() end
local session, past = recall('[oldgx]+[ %d-]*')
if session == 'superseded' or past and not past[4] then return {'superseded', num(us)} end
if session == 'again' then return moved_before(past) end

local ids = {}
for i = 4, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
local waiting, states = call('ZMSCORE', KEYS[5], unpack(ids)), call('HMGET', KEYS[7], unpack(ids))
local expiries = meta_num('exp') > 0 and call('ZMSCORE', KEYS[9], unpack(ids)) or {}
local letters, dues, steps, last = {}, {}, {}, 0
for i, id in ipairs(ids) do
  local s, when, expiry = read_state(states[i]), ARGV[2 * i + 3], expiries[i] and at_score(expiries[i])
  local due
  if string.sub(when, 1, 1) == '+' then due = after(tonumber(string.sub(when, 2))) else due = tonumber(when) end
  dues[i], steps[i], last = num(due), num(due - last), due
  if not waiting[i] then
    letters[i] = not s and 'g' or s.phase == 'X' and 'd' or 'l'
  elseif expiry and due > expiry then
    letters[i] = 'x'
  else
    letters[i] = 'o'
    enters('due', id, due)
    arrives(due)
  end
end
letters = table.concat(letters)
apply()
if meta.born then
  begin_with_removal()
  remember(0, letters .. ' ' .. table.concat(steps, ' '))
end
lower_agenda(soon)
write_meta()
sweep_sessions()
announce()
return {'ok', num(us), letters, dues}
