-- Puts elements back to where they were taken from.
-- Keys: 1 lock, 2 entries, 3 a list or a sorted set, 4 a list that has the elements of the sorted set too, if there is one
-- Args: 1 token, 2 lock ms, 3 list or sorted, 4 which end of the list: 1 head, -1 tail,
--       then per element: element, score (empty for a list), entry
-- Returns: how many
local back = 0
for i = 5, #ARGV, 3 do
  if redis.call('ZREM', KEYS[2], ARGV[i + 2]) == 1 then
    if ARGV[3] == 'list' then
      redis.call(ARGV[4] == '1' and 'LPUSH' or 'RPUSH', KEYS[3], ARGV[i])
    else
      redis.call('ZADD', KEYS[3], ARGV[i + 1], ARGV[i])
      if KEYS[4] then redis.call('RPUSH', KEYS[4], ARGV[i]) end
    end
    back = back + 1
  end
end
return back
