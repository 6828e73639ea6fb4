local meta, put, counts, loaded = {}, {}, {}, false
local COUNTED = {exp = 9, big = 11}

local function meta_num(name)
  return whole(meta[name]) or 0
end

local function size(name)
  return num(call('ZCARD', KEYS[COUNTED[name]]))
end

-- What cannot be read is as if it were not there, but for what would then be forgotten: expiries and large records are
-- counted, and leases looked for at once.
local function read_meta(...)
  local names = {'gate', ...}
  local values = call('HMGET', KEYS[3], unpack(names))
  for i = 1, #names do meta[names[i]] = values[i] or nil end
  loaded = true
  if meta.exp and not whole(meta.exp) then meta.exp = size('exp') end
  if meta.big and not whole(meta.big) then meta.big = size('big') end
  if meta.lo and meta.lo ~= '' and (whole(meta.lo) or MOST) > LATEST_MS then meta.lo = '0' end
  if meta.gate == '' then meta.gate = nil end
  if meta_num('attempts') < 1 or meta_num('attempts') > 999 then meta.attempts = nil end
  if meta_num('born') == 0 then meta.born = nil end
  if meta.paused ~= '1' then meta.paused = nil end
  if meta.forward and not (string.find(meta.forward, '^list:.') or string.find(meta.forward, '^stream:.')) then
    meta.forward = nil
  end
end

-- What is answered before any write where newer scripts keep more of the queue than these know: `gate` says what.
local function gated()
  return {'gate', num(us), meta.gate}
end

local function set(name, value)
  meta[name] = value
  put[#put + 1] = name
  put[#put + 1] = value
end

local function count(name, by)
  if not counts[name] then
    counts[#counts + 1], counts[name] = name, 0
  end
  counts[name] = counts[name] + by
end

-- Counts without having read; what was no number before begins again.
local function increment(name, by)
  local n = redis.pcall('HINCRBY', KEYS[3], name, num(by))
  if not failed(n) and n >= math.max(by, 0) and n <= MOST then return end
  if failed(n) and string.find(n.err, 'WRONGTYPE', 1, true) then
    call('HGET', KEYS[3], name)
  else
    call('HSET', KEYS[3], name, COUNTED[name] and size(name) or num(math.max(by, 0)))
  end
end

local function write_meta()
  for _, name in ipairs(counts) do
    local by = counts[name]
    if by ~= 0 and loaded then
      set(name, num(math.max(meta_num(name) + by, 0)))
    elseif by ~= 0 then
      increment(name, by)
    end
  end
  if #put > 0 then call('HSET', KEYS[3], unpack(put)) end
end

local function ended_jobs()
  return meta_num('acked') + meta_num('cancelled') + meta_num('expired') + meta_num('purged') + meta_num('forwarded')
    + meta_num('lost')
end

local function live_jobs()
  return math.max(meta_num('published') - ended_jobs(), 0)
end

-- The queue comes to be, unless it has. Its name is written again, since the index may have been lost.
local function is_born()
  if not meta.born then set('born', num(us)) end
  call('HSET', KEYS[2], queue, '')
end
