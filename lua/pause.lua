-- Pauses a queue (nothing is granted or forwarded) or resumes it, which wakes one engine.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 the cfgver it changes (0: there was none; empty: any), 3 paused (1 or empty)
-- Returns: ok, us, the new cfgver. Or: conflict, us, cfgver, paused (1 or empty)
--          Or: gate, us, what newer scripts are needed for
-- Repeat: conflict, with the sender's own value
-- Calls: 5 (+1 agenda, +2 wake, +1 head)
-- First write: HSET (refused whole at maxmemory)
clock()
read_meta('born', 'cfgver', 'paused', 'w', 'forward')
if meta.gate then return gated() end
if ARGV[2] ~= '' and ARGV[2] ~= num(meta_num('cfgver')) then
  return {'conflict', num(us), num(meta_num('cfgver')), meta.paused or ''}
end
is_born()
set('cfgver', num(meta_num('cfgver') + 1))
if ARGV[3] == '1' then set('paused', '1') end
write_meta()
if ARGV[3] ~= '1' and meta.paused then
  call('HDEL', KEYS[3], 'paused')
  meta.paused = nil
  lower_agenda(now)
  woken = true
end
announce()
return {'ok', num(us), meta.cfgver}
