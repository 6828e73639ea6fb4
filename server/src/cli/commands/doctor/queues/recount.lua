-- Holds what meta counts to what there is: how many jobs expire and are large, the earliest lease end, whether somebody
-- waits, and the counters, which say how many jobs there are: what was published and has not ended.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 mend, or empty to look only
-- Returns: of each field that is wrong: its name, what it was or nil, what it ought to be
-- All is counted and set in one call, since a busy queue would have changed before another one came.
-- A counter that is no number starts again at 0, but for one of those that say how many jobs there are: it follows from
-- the others. Jobs that are counted and are gone are lost; of those that nobody counted it is taken that they were published.
local ENDED = {'acked', 'cancelled', 'expired', 'purged', 'forwarded', 'lost'}
local OTHERS = {'granted', 'nacked', 'snoozed', 'released', 'ended', 'died', 'requeued', 'unreadable', 'newer'}
local LARGEST = 9007199254740992

local function type_of(i)
  return redis.call('TYPE', KEYS[i]).ok
end

local function size(i, type, command)
  return type_of(i) == type and redis.call(command, KEYS[i]) or 0
end

local function num(x)
  return string.format('%.0f', x)
end

-- The number of a text that scripts would write, or nil.
local function whole(text)
  if not text or not string.find(text, '^%d+$') or #text > 16 then return nil end
  local number = tonumber(text)
  return number < LARGEST and num(number) == text and number or nil
end

local names = {'exp', 'big', 'lo', 'w', 'published'}
for _, list in ipairs({ENDED, OTHERS}) do
  for _, name in ipairs(list) do names[#names + 1] = name end
end
local kind = type_of(3)
if kind ~= 'hash' and kind ~= 'none' and ARGV[1] == 'mend' then return {} end
local values, meta, ought = kind == 'hash' and redis.call('HMGET', KEYS[3], unpack(names)) or {}, {}, {}
for i, name in ipairs(names) do meta[name] = values[i] or nil end

for i, name in ipairs({'exp', 'big'}) do
  local there = size(i == 1 and 9 or 11, 'zset', 'ZCARD')
  if whole(meta[name] or '0') ~= there then ought[name] = num(there) end
end

local first = type_of(6) == 'zset' and redis.call('ZRANGE', KEYS[6], 0, 0, 'WITHSCORES')[2]
local lo = whole(meta.lo)
if first and (not lo or lo > tonumber(first)) then
  ought.lo = whole(first) and first or '0'
elseif not first and not lo and (meta.lo or '') ~= '' then
  ought.lo = ''
end
if size(10, 'zset', 'ZCARD') > 0 then
  if meta.w ~= '1' then ought.w = '1' end
elseif meta.w and meta.w ~= '1' then
  ought.w = '1'
end

local counts, unknown = {}, {}
for _, name in ipairs(OTHERS) do
  if not whole(meta[name] or '0') then ought[name] = '0' end
end
local gone = 0
for _, name in ipairs(ENDED) do
  counts[name] = whole(meta[name] or '0')
  if counts[name] then gone = gone + counts[name] else unknown[#unknown + 1] = name end
end
local jobs, published = size(4, 'hash', 'HLEN'), whole(meta.published or '0')
for i, name in ipairs(unknown) do
  counts[name] = i == 1 and published and math.max(published - gone - jobs, 0) or 0
  gone = gone + counts[name]
  ought[name] = num(counts[name])
end
local surplus = published and published - gone - jobs
if not published or surplus < 0 then
  ought.published = num(gone + jobs)
elseif surplus > 0 then
  ought.lost = num(counts.lost + surplus)
end

local wrong, put = {}, {}
for _, name in ipairs(names) do
  if ought[name] then
    wrong[#wrong + 1] = {name, meta[name] or false, ought[name]}
    put[#put + 1], put[#put + 2] = name, ought[name]
  end
end
if #put > 0 and ARGV[1] == 'mend' then redis.call('HSET', KEYS[3], unpack(put)) end
return wrong
