-- A page of the members of one of a queue's keys, and all that is known of those jobs, at one moment.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 which key, 2 cursor, 3 count
-- Returns: us, the next cursor, ids, then of each id or nil: its scores in due, leased, dead, exp and big, its state,
--          the first bytes of its record; then the lengths of the records
-- Only bytes at the beginning of a record are sent. Of an id that is not of the pool's page, no record is read: it is
-- empty if there is one.
local HEAD_BYTES = 96
local TYPES = {'zset', 'hash', 'hash', 'hash', 'zset', 'zset', 'hash', 'zset', 'zset', 'zset', 'zset'}
local source = tonumber(ARGV[1])
local t = redis.call('TIME')

local function usable(i)
  return redis.call('TYPE', KEYS[i]).ok == TYPES[i]
end

local function asked(command, i, ids)
  local all = {}
  if not usable(i) then
    for n = 1, #ids do all[n] = false end
    return all
  end
  for from = 1, #ids, 1000 do
    local some = redis.call(command, KEYS[i], unpack(ids, from, math.min(from + 999, #ids)))
    for n = 1, #some do all[from + n - 1] = some[n] end
  end
  return all
end

local ids, records, lengths, cursor = {}, {}, {}, '0'
if usable(source) then
  local scan = TYPES[source] == 'hash' and 'HSCAN' or 'ZSCAN'
  local page = redis.call(scan, KEYS[source], ARGV[2], 'COUNT', ARGV[3])
  cursor = page[1]
  for i = 1, #page[2], 2 do
    ids[#ids + 1] = page[2][i]
    if source == 4 then
      records[#ids], lengths[#ids] = string.sub(page[2][i + 1], 1, HEAD_BYTES), #page[2][i + 1]
    end
  end
end
local has_pool = source ~= 4 and usable(4)
if source ~= 4 then
  for i, id in ipairs(ids) do
    local is = has_pool and redis.call('HEXISTS', KEYS[4], id) == 1
    records[i], lengths[i] = is and '' or false, 0
  end
end
return {
  string.format('%.0f', t[1] * 1000000 + t[2]), cursor, ids, asked('ZMSCORE', 5, ids), asked('ZMSCORE', 6, ids),
  asked('ZMSCORE', 8, ids), asked('ZMSCORE', 9, ids), asked('ZMSCORE', 11, ids), asked('HMGET', 7, ids), records, lengths,
}
