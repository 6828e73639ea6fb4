-- Grants leases on the first due jobs; what ended comes back first. Idle engines register to be woken.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 session, 3 sequence, 4 how many (0: take the engine off waiting), 5 lease ms,
--       6 max bytes, 7 engine, or empty if it cannot be woken
-- Returns: ok | again | closed (paused or forwarding), us, fence, lease end, the queue's backoff, ids, dues, records,
--          states, the next event's time or empty, 1 if due jobs were left. Or: superseded, us
--          Or: gate, us, what newer scripts are needed for
-- Repeat: the same sequence answers its grants that are still held; a lower one does nothing
-- Calls: 13 (+1 if no more are due, +2 exp, +1 waiting, +2 wake, +1 head); 11 of up to 16 jobs and of up to 4, 9 empty. What is not plain: 12 (+1 big, +1 exp,
--        +6 to 8 reap, +1 waiting, +2 agenda, +2 wake, +1 head, +3 sweep); 9 empty
-- First write: ZREM (runs at maxmemory)
-- Instructions: 288 k alone, 32 k a job of 100; where nothing is due 211 k, 222 k if 100 are asked for
local DEFAULT_ATTEMPTS = 10
local want, lease_ms, max_bytes, engine = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]

local function granted_before(past)
  local fence, held, dues, records, states = tonumber(past[3]), {}, {}, {}, {}
  local ids = {unpack(past, 5)}
  local texts = #ids > 0 and call('HMGET', KEYS[7], unpack(ids)) or {}
  for i, id in ipairs(ids) do
    local s = read_state(texts[i])
    if s and s.phase == 'L' and s.fence == fence then
      held[#held + 1], dues[#dues + 1], states[#states + 1] = id, num(s.due), texts[i]
    end
  end
  if #held > 0 then records = call('HMGET', KEYS[4], unpack(held)) end
  return {'again', num(us), past[3], past[4], meta.backoff or '', held, dues, records, states, '', ''}
end

-- The first due ids and their due times, the first due time that is still ahead, and whether more are due.
local function first_due(limit)
  local ids, dues = {}, {}
  local head = call('ZRANGE', KEYS[5], 0, limit, 'WITHSCORES')
  for i = 1, #head, 2 do
    local due = at_score(head[i + 1])
    if due > now then return ids, dues, due, false end
    if #ids == limit then return ids, dues, nil, true end
    ids[#ids + 1], dues[#dues + 1] = head[i], due
  end
  return ids, dues, nil, false
end

local function grant(job, fence, lease_end)
  local s = job.state or {attempts = 0, deliveries = 0, reason = ''}
  s.phase, s.fence, s.verdict, s.due = 'L', fence, 0, job.due
  s.attempts, s.deliveries = math.min(s.attempts + 1, 9999), math.min(s.deliveries + 1, 9999)
  s.max = job.head.attempts > 0 and job.head.attempts or whole(meta.attempts) or DEFAULT_ATTEMPTS
  s.ext = job.head.lost_delay
  s.flags = (job.ttl and TTL or 0) + (s.ext ~= '' and LOST_DELAY or 0) + (job.big and BIG or 0)
  keeps(job.id, s)
  enters('leased', job.id, lease_end)
  return state_text(s)
end

clock()
read_meta(ARGV[2], 'attempts', 'backoff', 'paused', 'forward', 'retention', 'expire', 'fence', 'lo', 'w', 'big',
  'exp', 'sessions', 'sweep', 'granted', 'ended', 'died', 'expired', 'lost', 'newer', 'unreadable')
if meta.gate then return gated() end
local session, past = recall('%d+ %d+ .*')
if session == 'superseded' then return {'superseded', num(us)} end
if session == 'again' then return granted_before(past) end

reap(100)
local ids, dues, next_due, more, sizes = {}, {}, nil, false, {}
local open = not meta.paused and not meta.forward
if open and want > 0 then
  ids, dues, next_due, more = first_due(want)
  local fit
  fit, sizes = how_many_fit(ids, max_bytes)
  if fit < #ids then
    more = true
    for i = #ids, fit + 1, -1 do ids[i] = nil end
  end
end
local jobs = sift(ids, dues, sizes)

local fence = math.max(meta_num('fence') + 1, us)
local lease_end = after(lease_ms)
local answer = {ids = {}, dues = {}, records = {}, states = {}}
for i, job in ipairs(jobs) do
  answer.states[i] = grant(job, fence, lease_end)
  answer.ids[i], answer.dues[i], answer.records[i] = job.id, num(job.due), job.record
end
if #jobs > 0 then
  set('fence', num(fence))
  set('lo', num(min(whole(meta.lo), lease_end)))
  count('granted', #jobs)
end
apply()
begin_with_removal()

if want == 0 then
  call('ZREM', KEYS[10], engine)
elseif engine ~= '' and #jobs < want and not more then
  call('ZADD', KEYS[10], num(now), engine)
  if meta.w ~= '1' then set('w', '1') end
end
local at
if open and want > 0 and not more then
  at = next_event(min(next_due, soon))
  set_agenda(at)
  if #jobs > 0 and at < now + HEAD_NEAR_MS and lease_ms < HEAD_NEAR_MS then head = at end
else
  if #jobs > 0 then note(lease_end) end
  lower_agenda(soon)
end
remember(lease_end, num(fence) .. ' ' .. num(lease_end) .. ' ' .. table.concat(answer.ids, ' '))
write_meta()
sweep_sessions()
woken = more or (woken and want == 0)
announce()
return {open and 'ok' or 'closed', num(us), num(fence), num(lease_end), meta.backoff or '', answer.ids, answer.dues,
  answer.records, answer.states, at and num(at) or '', more and '1' or ''}
