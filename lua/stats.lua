-- A queue's config, counters and sizes.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 hours: how many hours of delayed jobs to count, 0 to 48
-- Returns: ok, us, values of the fields below in their order (empty if not set), ready, delayed, leased, dead, the oldest
--          due time or empty, the delayed jobs of each hour from now
--          Or: gate, us, what newer scripts are needed for
-- Repeat: reads only
-- Calls: 8 (+1 an hour)
-- First write: none
local FIELDS = {'born', 'cfgver', 'paused', 'attempts', 'backoff', 'retention', 'expire', 'max_jobs',
  'max_bytes', 'forward', 'push', 'forward_error', 'mean', 'published', 'granted', 'acked', 'nacked', 'snoozed',
  'released', 'ended', 'died', 'requeued', 'purged', 'cancelled', 'expired', 'forwarded', 'lost', 'unreadable', 'newer', 'broken'}
local HOUR_MS = 3600000

only_reads = true
clock()
read_meta(unpack(FIELDS))
if meta.gate then return gated() end
local values, hours = {}, {}
for i, name in ipairs(FIELDS) do values[i] = shown(name) end
local ready = call('ZCOUNT', KEYS[5], '-inf', num(now))
local delayed = call('ZCARD', KEYS[5]) - ready
local leased, dead = call('ZCARD', KEYS[6]), call('ZCARD', KEYS[8])
local oldest = at_score(call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2])
for hour = 1, tonumber(ARGV[2]) do
  local from = now + (hour - 1) * HOUR_MS
  hours[hour] = num(call('ZCOUNT', KEYS[5], '(' .. num(from), num(from + HOUR_MS)))
end
return {'ok', num(us), values, num(ready), num(delayed), num(leased), num(dead),
  oldest and num(oldest) or '', hours}
