-- Ends leases: each by its fence, with a verdict.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 tidy (1: recompute the agenda, as the engine's last lease here ends),
--       then per lease: id, fence, verdict, after ms, reason.
--       Verdicts: A ack, N nack, S snooze, R release, B bury. Snooze and release give the attempt back
-- Returns: ok, us (empty if all were acks), a letter per lease: o done, d done and the job is dead,
--          e done and the job had expired, g gone, s stale, r repeat, or the first verdict where it was another
--          Or: gate, us (empty if all were acks), what newer scripts are needed for
-- Repeat: g after an ack, r after any other verdict
-- Calls: 6 all acks, to 13 mixed (+3 acks of what has a TTL, +1 of what is large or failed before, +3 to 5 tidy, +2 wake, +1 head)
-- First write: ZREM (runs at maxmemory)
-- Instructions: 100 k alone, 25 k a job of 100
local REASON_BYTES = 1024
-- The verdicts that leave a state, and the digit that it has of each.
local DIGIT, BY_DIGIT = {N = 1, S = 2, R = 3, B = 4}, {'N', 'S', 'R', 'B'}

local tidy, timed = ARGV[2] == '1', ARGV[2] == '1'
local ids = {}
for i = 3, #ARGV, 5 do
  ids[#ids + 1] = ARGV[i]
  if ARGV[i + 2] ~= 'A' then timed = true end
end
if timed then
  clock()
  read_meta('retention', 'expire', 'forward', 'paused', 'w', 'lo', 'big', 'exp', 'acked', 'nacked', 'snoozed',
    'released', 'died', 'expired')
  if meta.gate then return gated() end
end

local function waits(id, s, due)
  s.phase = 'W'
  s.due = due
  keeps(id, s)
  enters('due', id, due)
  arrives(due)
  return 'o'
end

local function buried(id, s, reason)
  dies(id, s, reason)
  return 'd'
end

local verdicts = {
  N = function(id, s, delay, reason)
    count('nacked', 1)
    if s.attempts >= s.max then return buried(id, s, reason) end
    s.reason = reason
    return waits(id, s, after(delay))
  end,
  S = function(id, s, delay)
    count('snoozed', 1)
    s.attempts = s.attempts - 1
    return waits(id, s, after(delay))
  end,
  R = function(id, s, delay)
    count('released', 1)
    s.attempts = s.attempts - 1
    return waits(id, s, delay > 0 and after(delay) or s.due)
  end,
  B = function(id, s, _, reason) return buried(id, s, reason) end,
}

-- A verdict under this lease was carried out before: that one stands.
local function again(s, verdict)
  local first = BY_DIGIT[s.verdict]
  return first ~= verdict and first or 'r'
end

local function settle(i, id, s)
  local fence, verdict = tonumber(ARGV[5 * i - 1]), ARGV[5 * i]
  if not s then return 'g' end
  if s.phase ~= 'L' or s.fence ~= fence then
    return s.fence == fence and s.verdict > 0 and again(s, verdict) or 's'
  end
  leaves('leased', id)
  if verdict == 'A' then
    vanishes(id, s)
    count('acked', 1)
    return 'o'
  end
  if has(s.flags, EXPIRED) then
    expires(id, s)
    return 'e'
  end
  s.verdict = DIGIT[verdict]
  return verdicts[verdict](id, s, tonumber(ARGV[5 * i + 1]), string.sub(ARGV[5 * i + 2], 1, REASON_BYTES))
end

local texts, states, settled, letters = call('HMGET', KEYS[7], unpack(ids)), {}, {}, {}
for i = 1, #ids do
  states[i] = read_state(texts[i]) or false
  -- Acks alone do not read meta: a state shows that there is a gate.
  if states[i] and not states[i].broken and states[i].flags >= GATED then
    local text = redis.pcall('HGET', KEYS[3], 'gate')
    return {'gate', us and num(us) or '', type(text) == 'string' and text or ''}
  end
end
for i, id in ipairs(ids) do
  local s = settled[id]
  if s == nil then s = states[i] end
  letters[i] = settle(i, id, s)
  if letters[i] == 'o' and ARGV[5 * i] == 'A' or letters[i] == 'e' then s = false end
  settled[id] = s or false
end
apply()
lower_agenda(soon)
if tidy and not meta.forward then
  begin_with_removal()
  bound_leases()
  local ahead = call('ZRANGEBYSCORE', KEYS[5], '(' .. num(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  set_agenda(next_event(at_score(ahead)))
end
write_meta()
announce()
return {'ok', us and num(us) or '', table.concat(letters)}
