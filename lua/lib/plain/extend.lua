-- The common case of extend, before all else: every lease is held under its fence, and none has a delay after a lost lease. Where
-- anything is not so it leaves with nothing written, and the script behind it decides.
repeat
  local sub, find, rep, unpack = string.sub, string.find, string.rep, unpack or table.unpack
  us_text = ARGV[1]
  if us_text == '' then
    local seconds_text, micros_text = unpack(redis.call('TIME'))
    us_text = seconds_text .. sub('00000' .. micros_text, -6)
  end
  local lease_ms = ARGV[2] + 0
  if #us_text ~= 16 or lease_ms == 0 then break end
  local end_text = string.format('%.0f', math.ceil(us_text / 1000) + lease_ms)
  local n, ids, held = 0, {}, {}
  for i = 3, #ARGV, 2 do
    n = n + 1
    ids[n], held[2 * n - 1], held[2 * n] = ARGV[i], end_text, ARGV[i]
  end
  local texts = redis.pcall('HMGET', KEYS[7], unpack(ids))
  if texts.err or #end_text ~= 13 then break end
  local digits_text = rep('%d', 13)
  local rest_text = '^' .. rep('%d', 4) .. '[0-4]' .. rep('%d', 7) .. '0[014589cd]' .. digits_text .. '00'
  for i = 1, n do
    local fence_text = ARGV[2 * i + 2]
    if not texts[i] or #fence_text ~= 16 or fence_text > '9007199254740991' or sub(texts[i], 1, 17) ~= 'L' .. fence_text
      or not find(texts[i], rest_text, 18) then n = 0 break end
  end
  if n == 0 then break end

  put('ZREM', KEYS[5], '')
  put('ZADD', KEYS[6], 'XX', 'GT', unpack(held))
  plain = {'ok', us_text, rep('o', n), end_text}
  if not rest[1] then return plain end
until true
