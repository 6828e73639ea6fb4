-- The common case of publish, before all else: what it does not need is never made. Jobs are new and small, the queue is
-- there and has room, the lane is known. Where anything is not so it leaves with nothing written, and the
-- script behind it decides. Times stay the texts that they are: of one length, they compare as numbers do.
repeat
  local pcall, sub, find, format, unpack = redis.pcall, string.sub, string.find, string.format, unpack or table.unpack
  us_text = ARGV[1]
  if us_text == '' then
    local seconds_text, micros_text = unpack(redis.call('TIME'))
    us_text = seconds_text .. sub('00000' .. micros_text, -6)
  end
  -- Nothing is known yet of a lane whose first batch this is.
  if #us_text ~= 16 or ARGV[3] == '1' then break end
  local now_text = sub(us_text, 1, -4)

  local m = pcall('HMGET', KEYS[3], ARGV[2], 'born', 'gate', 'max_jobs', 'max_bytes', 'mean', 'sessions', 'published',
    'acked', 'cancelled', 'expired', 'purged', 'forwarded', 'lost', 'w', 'paused', 'forward', 'exp')
  if m.err or not m[1] or not m[2] or m[3] or m[17] then break end
  local numbers = {m[2], m[4] or ARGV[4], m[5] or ARGV[5], m[6] or '0', m[7] or '0'}
  for i = 8, 14 do numbers[i - 2] = m[i] or '0' end
  numbers[13] = m[18] or '0'
  local numbers_text = table.concat(numbers, ',') .. ','
  if find(numbers_text, '[^%d,]') or find(numbers_text, ',0%d') or find(numbers_text, ',,', 1, true)
    or not find(numbers_text, '^[1-9]') or #m[2] ~= 16 or m[2] > '9007199254740991'
    or find(numbers_text, ',%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d') then break end
  local last, kept = string.match(m[1], '^(%d+) (%d+) %d+ [nrdf]+$')
  if not last or last + 0 >= ARGV[3] + 0 or numbers[5] + 0 > 64 then break end
  local jobs, mean = numbers[6] + 0, numbers[4] + 0
  for i = 7, 12 do jobs = jobs - numbers[i] end
  if jobs < 0 then jobs = 0 end
  local max_jobs, max_bytes = numbers[2] + 0, numbers[3] + 0
  if max_jobs > 0 and jobs >= max_jobs or max_bytes > 0 and jobs * mean >= max_bytes then break end

  local n, ids, pool, due, exp, seen, bytes = 0, {}, {}, {}, {}, {}, 0
  local when, ttl, due_text, end_text, soon_text, is_due
  for i = 6, #ARGV, 4 do
    local id, record = ARGV[i], ARGV[i + 3]
    if #record > 4096 or seen[id] then n = 0 break end
    if ARGV[i + 1] ~= when then
      when, due_text = ARGV[i + 1], ARGV[i + 1]
      if when == '+0' then
        due_text = now_text
      elseif find(when, '^%+[1-9]%d*$') then
        due_text = format('%.0f', math.ceil(us_text / 1000) + sub(when, 2))
      end
      if #due_text ~= 13 or not find(due_text, '^[1-9]%d*$') then n = 0 break end
      if due_text <= now_text then
        is_due = true
      elseif not soon_text or due_text < soon_text then
        soon_text = due_text
      end
    end
    if ARGV[i + 2] ~= ttl then
      ttl = ARGV[i + 2]
      end_text = ttl ~= '0' and find(ttl, '^[1-9]%d*$') and format('%.0f', math.ceil(us_text / 1000) + ttl)
      if ttl ~= '0' and (not end_text or #end_text ~= 13) then n = 0 break end
      if end_text and (not soon_text or end_text < soon_text) then soon_text = end_text end
    end
    if end_text then exp[#exp + 1], exp[#exp + 2] = end_text, id end
    n = n + 1
    ids[n], pool[2 * n - 1], pool[2 * n], due[2 * n - 1], due[2 * n] = id, id, record, due_text, id
    seen[id], bytes = true, bytes + #record
  end
  if n == 0 then break end
  local states, waiting = pcall('HMGET', KEYS[7], unpack(ids)), {}
  if n > 1 then waiting = pcall('ZMSCORE', KEYS[5], unpack(ids)) end
  if waiting.err or states.err then break end
  for i = 1, n do
    if waiting[i] or states[i] then n = 0 break end
  end
  -- One job alone: where it waits already, nothing is written.
  if n == 0 or n == 1 and pcall('ZADD', KEYS[5], 'NX', due[1], due[2]) ~= 1 then break end

  local tag_text = sub(KEYS[1], 1, -7)
  local queue_text = sub(KEYS[3], #tag_text + 1, -6)
  local letters = string.rep('n', n)
  put('HSET', KEYS[4], unpack(pool))
  if n > 1 then put('ZADD', KEYS[5], unpack(due)) end
  if exp[1] then put('ZADD', KEYS[9], unpack(exp)) end
  if math.floor(kept / 60000) ~= math.floor((now_text + 600000) / 60000) then put('HSET', KEYS[2], queue_text, '') end
  local fields = {
    'mean', format('%.0f', math.floor((mean * jobs + bytes) / (jobs + n))), 'published', format('%.0f', numbers[6] + n),
    ARGV[2], ARGV[3] .. ' ' .. format('%.0f', now_text + 600000) .. ' ' .. us_text .. ' ' .. letters,
  }
  if exp[1] then fields[7], fields[8] = 'exp', format('%.0f', numbers[13] + #exp / 2) end
  put('HSET', KEYS[3], unpack(fields))
  if soon_text and put('ZADD', KEYS[1], 'LT', 'CH', soon_text, 'q' .. queue_text) == 1
    and soon_text + 0 < now_text + 15000 then
    pcall('PUBLISH', tag_text .. 'head', soon_text)
  end
  if is_due and m[15] == '1' and m[16] ~= '1' then
    for _ = 1, 4 do
      local popped = put('ZPOPMIN', KEYS[10])
      local engine = popped and popped[1]
      if not engine then
        put('HDEL', KEYS[3], 'w')
        break
      end
      if pcall('PUBLISH', tag_text .. 'wake:' .. engine, queue_text) ~= 0 then break end
    end
  end
  plain = {'ok', us_text, us_text, letters}
  if not rest[1] then return plain end
until true
