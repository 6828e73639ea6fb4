local out = {leased = {}, due = {}, dead = {}, exp = {}, big = {}, state = {}, pool = {}}
local into = {due = {}, leased = {}, dead = {}, state = {}}
local removed = false

local function leaves(place, id)
  out[place][#out[place] + 1] = id
end

local function enters(place, id, score)
  local list = into[place]
  list[#list + 1] = num(score)
  list[#list + 1] = id
end

local function keeps(id, s)
  local list = into.state
  list[#list + 1] = id
  list[#list + 1] = state_text(s)
end

-- What there is of a job beside its record and its place goes. One never delivered has no state to say
-- whether it has a TTL or is large.
local function is_forgotten(id, s)
  if s then leaves('state', id) end
  if (s and has(s.flags, TTL)) or (not s and meta_num('exp') > 0) then leaves('exp', id) end
  if (s and has(s.flags, BIG)) or (not s and meta_num('big') > 0) then leaves('big', id) end
end

-- Nothing of the job remains but the counter that the caller raises.
local function vanishes(id, s)
  leaves('pool', id)
  is_forgotten(id, s)
end

local function dies(id, s, reason)
  if has(s.flags, TTL) then leaves('exp', id) end
  flag(s, TTL, false)
  flag(s, EXPIRED, false)
  s.phase, s.reason = 'X', reason
  keeps(id, s)
  enters('dead', id, now)
  count('died', 1)
  if meta_num('retention') > 0 then note(now + meta_num('retention')) end
end

-- What was done to the job cannot be told.
local function is_unreadable(id, s, reason)
  dies(id, s, reason)
  count('unreadable', 1)
end

local function expires(id, s)
  if meta.expire == 'dead' then
    flag(s, TTL, true)
    s.verdict = 0
    dies(id, s, 'expired')
  else
    vanishes(id, s)
    count('expired', 1)
  end
end

local function never_delivered(due)
  return {
    phase = 'X', fence = 0, attempts = 0, verdict = 0, max = 0, deliveries = 0, flags = 0, due = due, ext = '', reason = '',
  }
end

local function remove(command, key, place)
  if #out[place] == 0 then return 0 end
  removed = true
  local n = call(command, key, unpack(out[place]))
  out[place] = {}
  return n
end

local function add(command, key, place)
  if #into[place] == 0 then return end
  if not removed then
    call('ZREM', KEYS[5], '')
    removed = true
  end
  call(command, key, unpack(into[place]))
  into[place] = {}
end

-- One call a place. Removing commands come first, so that a full Redis still drains.
local function apply()
  remove('ZREM', KEYS[6], 'leased')
  remove('ZREM', KEYS[5], 'due')
  remove('ZREM', KEYS[8], 'dead')
  remove('HDEL', KEYS[7], 'state')
  remove('HDEL', KEYS[4], 'pool')
  count('exp', -remove('ZREM', KEYS[9], 'exp'))
  count('big', -remove('ZREM', KEYS[11], 'big'))
  add('ZADD', KEYS[5], 'due')
  add('ZADD', KEYS[6], 'leased')
  add('ZADD', KEYS[8], 'dead')
  add('HSET', KEYS[7], 'state')
end

local function begin_with_removal()
  if not removed then
    call('ZREM', KEYS[5], '')
    removed = true
  end
end
