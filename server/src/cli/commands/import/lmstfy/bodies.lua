-- Reads the bodies of jobs, as many as fit, and how long each lives on.
-- Keys: the bodies'
-- Args: 1 how many bytes at most; one body is read whatever its size
-- Returns: per body that was read: nothing if there is none, a message if the key is no string, else body and PTTL
local answers, bytes = {}, 0
for i, key in ipairs(KEYS) do
  local body = redis.pcall('GET', key)
  if type(body) == 'table' then
    answers[i] = {'its body is no string'}
  elseif not body then
    answers[i] = {}
  else
    bytes = bytes + #body
    if i > 1 and bytes > tonumber(ARGV[1]) then break end
    answers[i] = {body, redis.call('PTTL', key)}
  end
end
return answers
