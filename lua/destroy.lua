-- Removes a queue and all it holds, at once.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 the born of the queue that is meant
-- Returns: ok, us, jobs waiting, leased, dead. Or: gone, us
-- Repeat: gone
-- Calls: 9; 3 if it is gone
-- First write: UNLINK (runs at maxmemory)
clock()
read_meta('born')
if meta.born ~= ARGV[2] then return {'gone', num(us)} end
local waiting, leased, dead = call('ZCARD', KEYS[5]), call('ZCARD', KEYS[6]), call('ZCARD', KEYS[8])
call('UNLINK', unpack(KEYS, 3, 11))
call('ZREM', KEYS[1], 'q' .. queue)
call('HDEL', KEYS[2], queue)
return {'ok', num(us), num(waiting), num(leased), num(dead)}
