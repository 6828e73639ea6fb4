local HEAD_NEAR_MS = 15000
local soon, woken, head

local function note(at)
  if at > now and (not soon or at < soon) then soon = at end
end

-- A job now waits until `due`: the agenda learns of it, or somebody is woken for it.
local function arrives(due)
  if due > now then
    note(due)
  elseif meta.forward then
    soon = now
  else
    woken = true
  end
end

local function lower_agenda(at)
  if at and call('ZADD', KEYS[1], 'LT', 'CH', num(at), 'q' .. queue) == 1 and at < now + HEAD_NEAR_MS then
    head = at
  end
end

local function min(a, b)
  if a and b then return math.min(a, b) end
  return a or b
end

-- The next time anything happens in this queue, given its next future due time.
local function next_event(next_due)
  local at = min(next_due, whole(meta.lo))
  if meta_num('exp') > 0 then
    at = min(at, at_score(call('ZRANGE', KEYS[9], 0, 0, 'WITHSCORES')[2]))
  end
  if meta_num('retention') > 0 then
    local died = at_score(call('ZRANGE', KEYS[8], 0, 0, 'WITHSCORES')[2])
    at = min(at, died and died + meta_num('retention'))
  end
  return at
end

local function set_agenda(at)
  if at then call('ZADD', KEYS[1], num(at), 'q' .. queue) else call('ZREM', KEYS[1], 'q' .. queue) end
end

local function wake()
  if meta.w ~= '1' then return end
  for _ = 1, 4 do
    local engine = call('ZPOPMIN', KEYS[10])[1]
    if not engine then
      call('HDEL', KEYS[3], 'w')
      return
    end
    if redis.pcall('PUBLISH', tag .. 'wake:' .. engine, queue) ~= 0 then return end
  end
end

local function announce()
  if head then redis.pcall('PUBLISH', tag .. 'head', num(head)) end
  if woken and not meta.paused and not meta.forward then wake() end
end
