-- Writes, if all is still as it was when the writes were decided on.
-- Args: how many reads; of each how many words and the words, then - if it must answer nothing, else = and the answer;
--       then of each write how many words and the words. The second word is the number of a key, and so is the third of
--       RENAME and of MOVE, which moves a field from one hash to another
-- Returns: 1 if it wrote
local at = 0

local function word()
  at = at + 1
  return ARGV[at]
end

local function command()
  local words = {}
  for i = 1, tonumber(word()) do words[i] = word() end
  words[2] = KEYS[tonumber(words[2])]
  if words[1] == 'RENAME' or words[1] == 'MOVE' then words[3] = KEYS[tonumber(words[3])] end
  return words
end

local function text(answer)
  if type(answer) == 'table' then return '=' .. (answer.ok or '') end
  if type(answer) == 'number' then return '=' .. string.format('%.0f', answer) end
  return answer and '=' .. answer or '-'
end

for _ = 1, tonumber(word()) do
  local answer = redis.call(unpack(command()))
  if text(answer) ~= word() then return 0 end
end
while at < #ARGV do
  local words = command()
  if words[1] == 'MOVE' then
    redis.call('HSET', words[3], words[4], redis.call('HGET', words[2], words[4]))
    redis.call('HDEL', words[2], words[4])
  else
    redis.call(unpack(words))
  end
end
return 1
