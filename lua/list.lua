-- Jobs in one place, in order of time and id, a page at a time.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 place (ready, delayed, leased or dead), 3 limit, 4 max bytes, 5 and 6 time and id of the last one
--       seen, or empty
-- Returns: ok, us, ids, scores, states (empty if never delivered), records, 1 if there are more
--          Or: gate, us, what newer scripts are needed for
-- Repeat: reads only
-- Calls: 6 (+1 big, +1 delayed, +2 to 22 to find the cursor)
-- First write: none
only_reads = true
clock()
read_meta('big')
if meta.gate then return gated() end
local place, limit, max_bytes, after_score, after_id = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6]
local key = place == 'leased' and KEYS[6] or place == 'dead' and KEYS[8] or KEYS[5]

-- Bytes in order, whatever the server's locale.
local function at_most(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a <= #b
end

-- The rank of the first entry after (score, id): entries of one score are in order of their ids.
local function rank_after(score, id)
  if tonumber(score) >= LATEST_MS then score = '+inf' end
  local low = call('ZCOUNT', key, '-inf', '(' .. score)
  local high = call('ZCOUNT', key, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if at_most(call('ZRANGE', key, middle, middle)[1], id) then low = middle + 1 else high = middle end
  end
  return low
end

local from = place == 'delayed' and call('ZCOUNT', key, '-inf', num(now)) or 0
if after_score ~= '' then from = math.max(from, rank_after(after_score, after_id)) end
local entries = call('ZRANGE', key, num(from), num(from + limit), 'WITHSCORES')
local ids, scores, more = {}, {}, false
for i = 1, #entries, 2 do
  local score = at_score(entries[i + 1])
  if place == 'ready' and score > now then break end
  if #ids == limit then
    more = true
    break
  end
  ids[#ids + 1], scores[#scores + 1] = entries[i], num(score)
end
local fit = how_many_fit(ids, max_bytes)
if fit < #ids then
  more = true
  for i = #ids, fit + 1, -1 do ids[i], scores[i] = nil, nil end
end
local states, records = {}, {}
if #ids > 0 then
  states, records = call('HMGET', KEYS[7], unpack(ids)), call('HMGET', KEYS[4], unpack(ids))
end
for i = 1, #ids do
  states[i], records[i] = states[i] or '', records[i] or ''
end
return {'ok', num(us), ids, scores, states, records, more and '1' or ''}
