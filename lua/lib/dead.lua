-- The dead letters that ARGV names: their ids and states, a letter per id asked for, and T.
local function dead_letters()
  local t, limit = tonumber(ARGV[3]) or now, tonumber(ARGV[4])
  local ids, letters = {}, {}
  if ARGV[2] == 'all' then
    ids = call('ZRANGEBYSCORE', KEYS[8], '-inf', num(t), 'LIMIT', 0, limit)
  else
    local asked, seen = {unpack(ARGV, 5)}, {}
    local died = call('ZMSCORE', KEYS[8], unpack(asked))
    for i, id in ipairs(asked) do
      if died[i] and at_score(died[i]) <= t and not seen[id] then
        letters[i], seen[id] = 'o', true
        ids[#ids + 1] = id
      else
        letters[i] = 'g'
      end
    end
  end
  return ids, #ids > 0 and call('HMGET', KEYS[7], unpack(ids)) or {}, table.concat(letters), t
end
