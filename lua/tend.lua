-- What must happen in a queue though nobody asks: ended leases, expiry, retention, forwarding, waking.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big,
--       12 the destination if the queue forwards
-- Args: 1 clock, 2 limit
-- Returns: ok, us, leases ended, jobs expired, dead letters purged, jobs forwarded, the next event's time or empty,
--          1 if there is more to do at once, where the queue forwards to or empty
--          Or: gate, us, what newer scripts are needed for
-- Repeat: harmless
-- Calls: 7 idle (+3 sweep); ended leases, expiry, retention and forwarding each add up to 15, a stream 1 a job
-- First write: ZREM (runs at maxmemory)
local WAITING_MS = 600000
local FORWARD_RETRY_MS, STREAM_LIMIT, FORWARD_BYTES = 10000, 64, 1048576
local limit = tonumber(ARGV[2])

local function expire()
  if meta_num('exp') == 0 then return 0 end
  local ids = call('ZRANGEBYSCORE', KEYS[9], '-inf', num(now), 'LIMIT', 0, limit)
  if #ids == 0 then return 0 end
  local states = call('HMGET', KEYS[7], unpack(ids))
  local sizes = meta_num('big') > 0 and meta.expire == 'dead' and call('ZMSCORE', KEYS[11], unpack(ids)) or {}
  local dues = meta.expire == 'dead' and call('ZMSCORE', KEYS[5], unpack(ids)) or {}
  for i, id in ipairs(ids) do
    local s = read_state(states[i])
    if s and s.phase == 'L' then
      flag(s, TTL, false)
      flag(s, EXPIRED, true)
      leaves('exp', id)
      keeps(id, s)
    else
      leaves('due', id)
      if s and s.broken then leaves('leased', id) end
      if meta.expire == 'dead' and (not s or s.broken) then
        s = never_delivered(dues[i] and at_score(dues[i]) or now)
        flag(s, BIG, sizes[i] and true or false)
      end
      expires(id, s)
    end
  end
  apply()
  return #ids
end

local function purge()
  if meta_num('retention') == 0 then return 0 end
  local ids = call('ZRANGEBYSCORE', KEYS[8], '-inf', num(now - meta_num('retention')), 'LIMIT', 0, limit)
  if #ids == 0 then return 0 end
  local states = call('HMGET', KEYS[7], unpack(ids))
  for i, id in ipairs(ids) do
    leaves('dead', id)
    vanishes(id, read_state(states[i]))
  end
  count('purged', #ids)
  apply()
  return #ids
end

local function encoding(flags)
  if has(flags, 8) then return has(flags, 16) and 'base64+lz4' or 'base64' end
  return has(flags, 16) and 'lz4' or 'identity'
end

local function append(kind, jobs)
  if kind == 'list' then
    local bodies = {}
    for _, job in ipairs(jobs) do
      bodies[#bodies + 1] = string.sub(job.record, job.head.headlen + job.head.metalen + 1)
    end
    local pushed = #bodies == 0 or redis.pcall('RPUSH', KEYS[12], unpack(bodies))
    return #jobs, type(pushed) == 'table' and pushed.err
  end
  for i, job in ipairs(jobs) do
    local body_at = job.head.headlen + job.head.metalen + 1
    local added = redis.pcall('XADD', KEYS[12], '*', 'id', job.id, 'due', num(job.due), 'attempt',
      num((job.state and job.state.attempts or 0) + 1), 'encoding', encoding(job.head.flags), 'meta',
      string.sub(job.record, job.head.headlen + 1, body_at - 1), 'body', string.sub(job.record, body_at))
    if type(added) == 'table' and added.err then return i - 1, added.err end
  end
  return #jobs
end

-- Appends first, removes after: whatever fails, a job is in one place or the other. Who does not know the destination,
-- or knows another one, is told and tends again; if not, or if appending failed, the agenda has the queue tended later.
local function forward()
  if not meta.forward or meta.paused then return 0, false end
  local colon = string.find(meta.forward, ':', 1, true)
  local kind, destination = string.sub(meta.forward, 1, colon - 1), string.sub(meta.forward, colon + 1)
  local most = kind == 'stream' and math.min(limit, STREAM_LIMIT) or limit
  local ids, dues = {}, {}
  local ready = call('ZRANGEBYSCORE', KEYS[5], '-inf', num(now), 'WITHSCORES', 'LIMIT', 0, most)
  for i = 1, #ready, 2 do
    ids[#ids + 1], dues[#dues + 1] = ready[i], at_score(ready[i + 1])
  end
  if #ids == 0 then return 0, false end
  if KEYS[12] ~= destination then return 0, false end
  local more = #ids == most
  local fit, sizes = how_many_fit(ids, FORWARD_BYTES)
  if fit < #ids then
    more = true
    for i = #ids, fit + 1, -1 do ids[i] = nil end
  end
  local plain, kept = {}, {}
  for _, job in ipairs(sift(ids, dues, sizes)) do
    if kind == 'list' and encoding(job.head.flags) ~= 'identity' then
      local s = job.state or never_delivered(job.due)
      flag(s, BIG, job.big)
      flag(s, TTL, job.ttl)
      s.verdict = 0
      dies(job.id, s, 'not plain')
    else
      plain[#plain + 1] = job
    end
  end
  begin_with_removal()
  local done, failed = append(kind, plain)
  if failed then
    for i = (kind == 'list' and 1 or done + 1), #plain do kept[plain[i].id] = true end
    local still = {}
    for _, id in ipairs(out.due) do
      if not kept[id] then still[#still + 1] = id end
    end
    out.due = still
    if kind == 'list' then done = 0 end
    set('forward_error', string.sub(failed, 1, 256))
  elseif meta.forward_error and #plain > 0 then
    set('forward_error', '')
  end
  for i = 1, done do vanishes(plain[i].id, plain[i].state or {flags = (plain[i].ttl and TTL or 0) + (plain[i].big and BIG or 0)}) end
  count('forwarded', done)
  apply()
  return done, more and not failed
end

local function sweep_waiting()
  if meta.w ~= '1' then return end
  if call('ZREMRANGEBYSCORE', KEYS[10], '-inf', num(now - WAITING_MS)) > 0 and call('ZCARD', KEYS[10]) == 0 then
    call('HDEL', KEYS[3], 'w')
    meta.w = nil
  end
end

clock()
read_meta('born', 'retention', 'expire', 'forward', 'forward_error', 'paused', 'w', 'lo', 'big', 'exp', 'sessions', 'sweep',
  'ended', 'died', 'expired', 'purged', 'forwarded', 'lost', 'newer', 'unreadable')
if meta.gate then return gated() end
local ended = reap(math.min(limit, 100))
local expired, purged = expire(), purge()
local forwarded, more_to_forward = forward()
begin_with_removal()
if meta.born then is_born() end
sweep_waiting()

local first = at_score(call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2])
local ready = first and first <= now
local next_due = not ready and first or nil
if ready then
  next_due = at_score(call('ZRANGEBYSCORE', KEYS[5], '(' .. num(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
end
local more = ended == math.min(limit, 100) or expired == limit or purged == limit or more_to_forward
local at = next_event(next_due)
if more then at = now end
if ready and meta.forward and not meta.paused then at = min(at, now + FORWARD_RETRY_MS) end
set_agenda(at)
write_meta()
sweep_sessions()
woken = ready and not meta.paused
announce()
return {'ok', num(us), num(ended), num(expired), num(purged), num(forwarded), at and num(at) or '', more and '1' or '',
  meta.forward or ''}
