-- Reads elements with their scores, as many as fit: of a sorted set, or of a list whose elements a sorted set has too.
-- Keys: 1 a list or a sorted set, 2 the sorted set beside a list, if there is one
-- Args: 1 list or sorted, 2 the first index, 3 how many, 4 how many bytes at most; one is read whatever its size
-- Returns: per element: element, score (empty if it has none)
local answers, bytes, first = {}, 0, tonumber(ARGV[2])
for i = first, first + tonumber(ARGV[3]) - 1 do
  local element, score
  if ARGV[1] == 'list' then
    element = redis.call('LINDEX', KEYS[1], i)
    score = element and KEYS[2] and redis.call('ZSCORE', KEYS[2], element)
  else
    element, score = unpack(redis.call('ZRANGE', KEYS[1], i, i, 'WITHSCORES'))
  end
  if not element then break end
  bytes = bytes + #element
  if #answers > 0 and bytes > tonumber(ARGV[4]) then break end
  answers[#answers + 1] = {element, score or ''}
end
return answers
