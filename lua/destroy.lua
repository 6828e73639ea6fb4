-- Removes a queue and all it holds, at once.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 the born of the queue that is meant; 0: one that does not know when it was born
-- Returns: ok, us, jobs waiting, leased, dead. Or: gone, us
--          Or: gate, us, what newer scripts are needed for
-- Repeat: gone
-- Calls: 9; 3 if it is gone
-- First write: ZREM (runs at maxmemory)
clock()
read_meta('born')
if meta.gate then return gated() end
if num(meta_num('born')) ~= ARGV[2] then return {'gone', num(us)} end
local function size(i)
  local n = redis.pcall('ZCARD', KEYS[i])
  return failed(n) and 0 or n
end
local waiting, leased, dead = size(5), size(6), size(8)
local removed = call('ZREM', KEYS[1], 'q' .. queue) + call('HDEL', KEYS[2], queue)
removed = removed + call('UNLINK', unpack(KEYS, 3, 11))
if removed == 0 then return {'gone', num(us)} end
return {'ok', num(us), num(waiting), num(leased), num(dead)}
