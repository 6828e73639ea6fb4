-- Takes elements out of where they are, and keeps each as an entry of the journal: in one step, so that neither the old
-- system nor another import has it too. One that is not there any more, or has another score, is left.
-- Keys: 1 lock, 2 entries, 3 a list or a sorted set, 4 a list that has the elements of the sorted set too, if there is one
-- Args: 1 token, 2 lock ms, 3 list or sorted, 4 which end of the list to look from: 1 head, -1 tail,
--       then per element: element, score (empty for a list), entry, due ms
-- Returns: per element 1 if it was taken, else 0
local function is_taken(element, score)
  if ARGV[3] == 'list' then return redis.call('LREM', KEYS[3], ARGV[4], element) == 1 end
  local now = redis.call('ZSCORE', KEYS[3], element)
  if not now or tonumber(now) ~= tonumber(score) then return false end
  redis.call('ZREM', KEYS[3], element)
  if KEYS[4] then redis.call('LREM', KEYS[4], ARGV[4], element) end
  return true
end

local taken = {}
for i = 5, #ARGV, 4 do
  local took = is_taken(ARGV[i], ARGV[i + 1])
  if took then redis.call('ZADD', KEYS[2], ARGV[i + 3], ARGV[i + 2]) end
  taken[#taken + 1] = took and 1 or 0
end
return taken
