-- Replaces the whole config of a queue, which it makes if there is none.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big,
--       12 the destination if the queue is to forward: a cluster refuses one of another slot
-- Args: 1 clock, 2 the cfgver it replaces (0: there was none; empty: any),
--       3 attempts, 4 backoff, 5 retention ms, 6 expire (dead or empty), 7 max jobs, 8 max bytes,
--       9 forward (list:key or stream:key), 10 push (a text); empty for what is not set
-- Returns: ok, us, the new cfgver. Or: conflict, us, cfgver, then the eight values found
--          Or: gate, us, what newer scripts are needed for
-- Repeat: conflict, with the sender's own values
-- Calls: 5 (+1 unset, +3 agenda, +2 wake)
-- First write: HSET (refused whole at maxmemory)
clock()
read_meta('born', 'cfgver', 'paused', 'w', 'lo', 'exp', unpack(CONFIG))
if meta.gate then return gated() end
if ARGV[2] ~= '' and ARGV[2] ~= num(meta_num('cfgver')) then
  local found = {'conflict', num(us), num(meta_num('cfgver'))}
  for i, name in ipairs(CONFIG) do found[i + 3] = shown(name) end
  return found
end
is_born()
local unset, forwarded = {}, meta.forward
for i, name in ipairs(CONFIG) do
  if ARGV[i + 2] ~= '' then
    set(name, ARGV[i + 2])
  elseif meta[name] then
    meta[name] = nil
    unset[#unset + 1] = name
  end
end
set('cfgver', num(meta_num('cfgver') + 1))
write_meta()
if #unset > 0 then call('HDEL', KEYS[3], unpack(unset)) end
local at = next_event()
if meta.forward and not meta.paused then at = now end
lower_agenda(at)
woken = forwarded and not meta.forward
announce()
return {'ok', num(us), meta.cfgver}
