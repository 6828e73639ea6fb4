-- The common case of settle, before all else: every lease is acknowledged under the fence that it has, and its job is small
-- and has not expired. Where anything is not so it leaves with nothing written, and the script behind it decides.
repeat
  local sub, find, unpack = string.sub, string.find, unpack or table.unpack
  if ARGV[2] == '1' then break end
  local n, ids = 0, {}
  for i = 3, #ARGV, 5 do
    if ARGV[i + 2] ~= 'A' or #ARGV[i + 1] ~= 16 then n = 0 break end
    n = n + 1
    ids[n] = ARGV[i]
  end
  if n == 0 then break end
  local texts = redis.pcall('HMGET', KEYS[7], unpack(ids))
  if texts.err then break end
  local fence_text, start_text
  local expiring = {}
  for i = 1, n do
    if ARGV[5 * i - 1] ~= fence_text then
      fence_text = ARGV[5 * i - 1]
      start_text = 'L' .. fence_text
      if fence_text > '9007199254740991' then n = 0 break end
    end
    if not texts[i] or sub(texts[i], 1, 17) ~= start_text or sub(texts[i], 45, 46) ~= '00' then n = 0 break end
    -- What is behind the fence is looked at for all at once. A reason is behind that, where an attempt has failed before.
    if #texts[i] > 46 then texts[i] = sub(texts[i], 1, 46) end
    local flags_text = sub(texts[i], 30, 31)
    if flags_text == '01' then expiring[#expiring + 1] = ids[i] elseif flags_text ~= '00' then n = 0 break end
  end
  if n == 0 or find(table.concat(texts), '[^L%d]') then break end
  if expiring[1] then
    local exp_text = redis.pcall('HGET', KEYS[3], 'exp')
    if type(exp_text) ~= 'string' or not find(exp_text, '^[1-9]%d*$') or #exp_text > 15 or exp_text + 0 < #expiring then break end
  end

  put('ZREM', KEYS[6], unpack(ids))
  local acked = put('HDEL', KEYS[7], unpack(ids))
  put('HDEL', KEYS[4], unpack(ids))
  if expiring[1] then
    local gone = put('ZREM', KEYS[9], unpack(expiring))
    if gone and gone > 0 then put('HINCRBY', KEYS[3], 'exp', -gone) end
  end
  local letters = string.rep('o', n)
  if acked ~= n then
    -- An id came twice.
    local seen = {}
    letters = {}
    for i = 1, n do
      letters[i], seen[ids[i]] = seen[ids[i]] and 'g' or 'o', true
    end
    letters = table.concat(letters)
  end
  local counted = redis.pcall('HINCRBY', KEYS[3], 'acked', acked)
  if type(counted) == 'table' and find(counted.err, 'WRONGTYPE', 1, true) then
    rest[#rest + 1] = {'HGET', KEYS[3], 'acked'}
  elseif type(counted) == 'table' or counted < acked or counted > 9007199254740991 then
    put('HSET', KEYS[3], 'acked', acked)
  end
  plain = {'ok', '', letters}
  if not rest[1] then return plain end
until true
