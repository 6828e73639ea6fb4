-- The common case of reserve, before all else: what is due is small and not expired, no lease has ended, nothing is paused
-- or forwarded, the lane is known. Where anything is not so it leaves with nothing written, and the script behind it
-- decides. Times stay the texts that they are: of one length, they compare as numbers do.
repeat
  local pcall, sub, find, format, unpack = redis.pcall, string.sub, string.find, string.format, unpack or table.unpack
  us_text = ARGV[1]
  local want, lease_ms, engine = ARGV[4] + 0, ARGV[5] + 0, ARGV[7]
  if us_text == '' then
    local seconds_text, micros_text = unpack(redis.call('TIME'))
    us_text = seconds_text .. sub('00000' .. micros_text, -6)
  end
  -- Nothing is known yet of a lane whose first batch this is.
  if #us_text ~= 16 or ARGV[3] == '1' or want == 0 or lease_ms == 0 then break end
  local now_text = sub(us_text, 1, -4)

  local m = pcall('HMGET', KEYS[3], ARGV[2], 'fence', 'granted', 'sessions', 'attempts', 'lo', 'exp', 'big', 'retention',
    'backoff', 'w', 'paused', 'forward', 'gate')
  if m.err or not m[1] or m[13] or m[12] == '1' or m[14] then break end
  local numbers_text = ',' .. table.concat({m[2] or '0', m[3] or '0', m[4] or '0', m[5] or '10', m[7] or '0', m[9] or '0'}, ',') .. ','
  if m[8] and m[8] ~= '0' or find(numbers_text, '[^%d,]') or find(numbers_text, ',0%d') or find(numbers_text, ',,', 1, true)
    or find(numbers_text, ',%d+,%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d') then break end
  local last = string.match(m[1], '^(%d+) %d+ %d+ %d+ .*$')
  if not last or last + 0 >= ARGV[3] + 0 or (m[4] or 0) + 0 > 64 then break end
  local attempts, lo_text = (m[5] or 10) + 0, m[6] or ''
  if attempts < 1 or attempts > 999 then break end
  if lo_text ~= '' and (#lo_text ~= 13 or not find(lo_text, '^[1-9]%d*$') or lo_text <= now_text or lo_text - now_text > 172800000) then
    break
  end

  -- Few are read with the one behind them. Of many, that would be as many that are not due yet: they are read as far as they
  -- are due, with one more.
  local head, next_text, n
  if want <= 4 then
    head, n = pcall('ZRANGE', KEYS[5], 0, want, 'WITHSCORES'), 0
    if head.err then break end
    while n < want and head[2 * n + 2] and head[2 * n + 2] <= now_text do n = n + 1 end
    next_text = head[2 * n + 2]
  else
    head = pcall('ZRANGEBYSCORE', KEYS[5], '-inf', now_text, 'WITHSCORES', 'LIMIT', 0, want + 1)
    if head.err then break end
    n = math.min(math.floor(#head / 2), want)
    next_text = head[2 * n + 2] or pcall('ZRANGE', KEYS[5], n, n, 'WITHSCORES')[2]
  end
  if n * 4096 > ARGV[6] + 0 or next_text and (#next_text ~= 13 or not find(next_text, '^[1-9]%d*$')) then break end
  local more = next_text and next_text <= now_text or false
  local may_expire, expiry_text = (m[7] or '0') ~= '0', nil
  if may_expire and not more then
    local first = pcall('ZRANGE', KEYS[9], 0, 0, 'WITHSCORES')
    expiry_text = first[2]
    if first.err or expiry_text and (#expiry_text ~= 13 or not find(expiry_text, '^[1-9]%d*$')) then break end
  end
  local retention_ms, purge_text = (m[9] or 0) + 0, nil
  if retention_ms > 0 and not more then
    local first = pcall('ZRANGE', KEYS[8], 0, 0, 'WITHSCORES')
    local died_text = first[2]
    purge_text = died_text and format('%.0f', died_text + retention_ms)
    if first.err or died_text and (#died_text ~= 13 or not find(died_text, '^[1-9]%d*$') or #purge_text ~= 13) then break end
  end
  local ids, dues, records, states = {}, {}, {}, {}
  local lease_end = math.ceil(us_text / 1000) + lease_ms
  local end_text, fence_text = format('%.0f', lease_end), us_text
  if m[2] and #m[2] >= 16 and m[2] >= us_text then fence_text = format('%.0f', m[2] + 1) end
  if #fence_text ~= 16 or fence_text > '9007199254740991' or #end_text ~= 13 then break end

  -- A long member at first makes Redis keep a table from the start, where the small lists that it has else are searched. That is
  -- two calls more, which an engine that nobody can wake, since it speaks REST, may be billed for.
  local long_text = n > 16 and engine ~= '' and string.rep(' ', 65)
  local leased, stored = {}, {}
  if long_text then leased, stored = {end_text, long_text}, {long_text, ''} end
  local before_them = #leased
  if n > 0 then
    for i = 1, n do ids[i], dues[i] = head[2 * i - 1], head[2 * i] end
    local dues_text = table.concat(dues)
    if #dues_text ~= 13 * n or find(dues_text, '%D') then break end
    records = pcall('HMGET', KEYS[4], unpack(ids))
    local before = pcall('HMGET', KEYS[7], unpack(ids))
    local expiries = may_expire and pcall('ZMSCORE', KEYS[9], unpack(ids)) or {}
    if records.err or before.err or expiries.err then break end
    local known, opening_text, middle_text, least
    for i = 1, n do
      local id, record, was = ids[i], records[i], before[i]
      local start_text = record and sub(record, 1, 12)
      if start_text ~= known or not record then
        -- No delay after a lost lease, and nothing that is newer than this script.
        local headlen, metalen, own = string.match(start_text or '', '^1(%d%d)(%x%x%x)[01][014589cdCD]%d(%d%d%d)$')
        if not headlen or headlen + 0 < 12 then n = -1 break end
        known, least = start_text, headlen + tonumber(metalen, 16)
        local most = own + 0 > 0 and own + 0 or attempts
        middle_text = format('%04d', most)
        opening_text = 'L' .. fence_text .. '0001' .. middle_text .. '0001'
      end
      if #record < least or sub(dues[i], 1, 1) == '0' then n = -1 break end
      local state_text, flags_text = nil, '00'
      if expiries[i] then
        flags_text = '01'
        if #expiries[i] ~= 13 or not find(expiries[i], '^[1-9]%d*$') or expiries[i] <= now_text then n = -1 break end
      end
      if not was then
        state_text = opening_text .. flags_text .. sub(dues[i], 1) .. '00'
      else
        -- It was delivered before, and had no delay after a lost lease then either.
        local fence, tries, times, flags, rest_text = string.match(was,
          '^[LWEX](%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)(%d%d%d%d)[0-4]%d%d%d(%d%d%d%d)0(%x)%d%d%d%d%d%d%d%d%d%d%d%d%d00(.*)$')
        if not fence or fence > '9007199254740991' or find('2367abefABEF', flags, 1, true) then n = -1 break end
        state_text = 'L' .. fence_text .. format('%04d', math.min(tries + 1, 9999)) .. middle_text
          .. format('%04d', math.min(times + 1, 9999)) .. flags_text .. sub(dues[i], 1) .. '00' .. rest_text
      end
      states[i] = state_text
      local at = before_them + 2 * i
      leased[at - 1], leased[at], stored[at - 1], stored[at] = end_text, id, id, state_text
    end
    if n < 0 then break end
  end

  local tag_text = sub(KEYS[1], 1, -7)
  local queue_text = sub(KEYS[3], #tag_text + 1, -6)
  local is_known = false
  local fields = {ARGV[2], ARGV[3] .. ' ' .. format('%.0f', math.max(now_text + 600000, lease_end)) .. ' ' .. fence_text .. ' '
    .. end_text .. ' ' .. table.concat(ids, ' ')}
  if n > 0 then
    put('ZREMRANGEBYRANK', KEYS[5], 0, n - 1)
    put('ZADD', KEYS[6], unpack(leased))
    put('HSET', KEYS[7], unpack(stored))
    if long_text then
      put('ZREM', KEYS[6], long_text)
      put('HDEL', KEYS[7], long_text)
    end
    if lo_text == '' or end_text < lo_text then
      lo_text = end_text
    else
      -- The agenda knows of a lease that ends no later.
      is_known = true
    end
    fields[3], fields[4], fields[5], fields[6] = 'fence', fence_text, 'lo', lo_text
    fields[7], fields[8] = 'granted', format('%.0f', (m[3] or 0) + n)
  else
    put('ZREM', KEYS[5], '')
  end
  local at_text, head_text = '', nil
  if more then
    if not is_known and put('ZADD', KEYS[1], 'LT', 'CH', end_text, 'q' .. queue_text) == 1 and end_text - now_text < 15000 then
      head_text = end_text
    end
  else
    if engine ~= '' and n < want then
      put('ZADD', KEYS[10], now_text, engine)
      if m[11] ~= '1' then fields[#fields + 1], fields[#fields + 2] = 'w', '1' end
    end
    at_text = next_text or lo_text
    if lo_text ~= '' and lo_text < at_text then at_text = lo_text end
    if expiry_text and (at_text == '' or expiry_text < at_text) then at_text = expiry_text end
    if purge_text and (at_text == '' or purge_text < at_text) then at_text = purge_text end
    if at_text == '' then
      put('ZREM', KEYS[1], 'q' .. queue_text)
    else
      put('ZADD', KEYS[1], at_text, 'q' .. queue_text)
      if n > 0 and at_text - now_text < 15000 and lease_ms < 15000 then head_text = at_text end
    end
  end
  put('HSET', KEYS[3], unpack(fields))
  if head_text then pcall('PUBLISH', tag_text .. 'head', head_text) end
  if more and m[11] == '1' then
    for _ = 1, 4 do
      local popped = put('ZPOPMIN', KEYS[10])
      local waiting = popped and popped[1]
      if not waiting then
        put('HDEL', KEYS[3], 'w')
        break
      end
      engine = waiting
      if pcall('PUBLISH', tag_text .. 'wake:' .. engine, queue_text) ~= 0 then break end
    end
  end
  plain = {'ok', us_text, fence_text, end_text, m[10] or '', ids, dues, records, states, at_text,
    more and '1' or ''}
  if not rest[1] then return plain end
until true
