-- Who tends the shard, and what it will have to do next.
-- Keys: 1 agenda, 2 queues, 3 lease, 4 and on: the due of each queue whose first due time is asked for
-- Args: 1 clock, 2 engine, 3 how many entries, 4 lease ms (0: give the lease up), 5 stay (0: take the lease only if
--       something is due, as cron does, and do not look for its holder otherwise)
-- Returns: ok, us, the engine that holds the lease or empty, its end, members of the agenda, their times,
--          the first due time of each queue asked for, or empty
-- A lease that ends later than its longest is free: Redis's clock was set back, or it is not one of ours
-- Repeat: harmless
-- Notifies: head 0 when the lease is given up, so that another takes it at once
-- Calls: 4 (+1 a queue asked for, +2 to take or keep the lease, +2 to give it up); 3 if it only looks and nothing is due
-- First write: UNLINK (runs at maxmemory)
local USUAL_LEASE_MS = 30000

clock()
local engine, count, lease_ms, stay = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1'
local entries = call('ZRANGE', KEYS[1], 0, math.max(count, 1) - 1, 'WITHSCORES')
local members, times, firsts = {}, {}, {}
for i = 1, math.min(#entries, 2 * count), 2 do
  members[#members + 1], times[#times + 1] = entries[i], num(at_score(entries[i + 1]))
end
for i = 4, #KEYS do
  local first = at_score(call('ZRANGE', KEYS[i], 0, 0, 'WITHSCORES')[2])
  firsts[#firsts + 1] = first and num(first) or ''
end
local head = at_score(entries[2])
local wanted = stay or (head and head <= now)
local holder, ends = '', 0
local text = (wanted or lease_ms == 0) and call('GET', KEYS[3])
if text then
  local name, at = string.match(text, '^([%w_-]+) (%d+)$')
  at = whole(at)
  local longest = now + math.max(lease_ms, USUAL_LEASE_MS)
  if at and #name == 11 and at > now and (lease_ms == 0 or at <= longest) then holder, ends = name, at end
end
if lease_ms == 0 then
  if holder == engine then
    call('UNLINK', KEYS[3])
    holder, ends = '', 0
    redis.pcall('PUBLISH', tag .. 'head', '0')
  end
elseif wanted and (holder == '' or (holder == engine and ends - now <= lease_ms / 2)) then
  holder, ends = engine, now + lease_ms
  call('UNLINK', KEYS[3])
  call('SET', KEYS[3], engine .. ' ' .. num(ends))
end
return {'ok', num(us), holder, num(ends), members, times, firsts}
