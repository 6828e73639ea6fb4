-- Gives waiting jobs another due time.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, then per job: id, when (+delay ms, or unix ms)
-- Returns: ok, us, a letter per job: o moved, l leased, d dead, g gone, x would expire before; the due times
-- Repeat: moves again, which is why its sender resends the absolute time it was answered
-- Calls: 8 (+1 exp, +2 wake, +1 head); 5 if none waits
-- First write: ZREM (runs at maxmemory)
clock()
local ids = {}
for i = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
read_meta('exp', 'w', 'paused', 'forward')
local waiting, states = call('ZMSCORE', KEYS[5], unpack(ids)), call('HMGET', KEYS[7], unpack(ids))
local expiries = meta_num('exp') > 0 and call('ZMSCORE', KEYS[9], unpack(ids)) or {}
local letters, dues = {}, {}
for i, id in ipairs(ids) do
  local s, when, expiry = read_state(states[i]), ARGV[2 * i + 1], tonumber(expiries[i] or '')
  local due
  if string.sub(when, 1, 1) == '+' then due = after(tonumber(string.sub(when, 2))) else due = tonumber(when) end
  dues[i] = num(due)
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
apply()
lower_agenda(soon)
write_meta()
announce()
return {'ok', num(us), table.concat(letters), dues}
