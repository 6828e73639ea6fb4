-- What a queue's keys are and hold, at one moment.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: names of fields of meta
-- Returns: us, the type of each key, how much each holds (0 of a wrong type), the fields, then, empty if there is none:
--          the next future due time, the heads of due, leased, exp and dead, the queue's time on the agenda; 1 if its
--          name is in queues
local TYPES = {'zset', 'hash', 'hash', 'hash', 'zset', 'zset', 'hash', 'zset', 'zset', 'zset', 'zset'}
local tag = string.sub(KEYS[1], 1, -7)
local queue = string.sub(KEYS[3], #tag + 1, -6)
local t = redis.call('TIME')
local now = string.format('%.0f', math.floor((t[1] * 1000000 + t[2]) / 1000))
local types, counts, usable = {}, {}, {}
for i, key in ipairs(KEYS) do
  types[i] = redis.call('TYPE', key).ok
  usable[i] = types[i] == TYPES[i]
  counts[i] = usable[i] and redis.call(TYPES[i] == 'hash' and 'HLEN' or 'ZCARD', key) or 0
end
local function head(i)
  return usable[i] and redis.call('ZRANGE', KEYS[i], 0, 0, 'WITHSCORES')[2] or ''
end
local ahead = usable[5] and redis.call('ZRANGEBYSCORE', KEYS[5], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or ''
local listed = usable[1] and redis.call('ZSCORE', KEYS[1], 'q' .. queue) or ''
local named = usable[2] and redis.call('HEXISTS', KEYS[2], queue) or 0
return {
  string.format('%.0f', t[1] * 1000000 + t[2]), types, counts, usable[3] and redis.call('HMGET', KEYS[3], unpack(ARGV)) or {},
  {ahead or '', head(5), head(6), head(9), head(8), listed or ''}, named,
}
