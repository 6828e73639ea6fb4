-- What a plain part answers, and its commands that met a key of another type: those who know how to do them come after it.
local plain, us_text
local rest = {}

local function put(...)
  local answer = redis.pcall(...)
  if type(answer) ~= 'table' or not answer.err then return answer end
  if not string.find(answer.err, 'WRONGTYPE', 1, true) then return redis.call(...) end
  rest[#rest + 1] = {...}
end
