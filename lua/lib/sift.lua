-- format(1) headlen(2) metalen(3, hex) flags(2, hex) priority(1) attempts(3)
local NEWER, HEAD = '^[2-9]', '^1%d%d%x%x%x%x%x%d%d%d%d'
local NEWER_MS = 60000
local SMALL_BYTES = 4096

-- The head of a record, or 'newer' or 'unreadable'.
local function read_head(record)
  if string.find(record, NEWER) then return 'newer' end
  if not string.find(record, HEAD) then return 'unreadable' end
  local flags = tonumber(string.sub(record, 7, 8), 16)
  if flags >= 32 then return 'newer' end
  local headlen = tonumber(string.sub(record, 2, 3))
  local metalen = tonumber(string.sub(record, 4, 6), 16)
  if headlen < 12 or headlen + metalen > #record then return 'unreadable' end
  local lost_delay = ''
  if has(flags, 2) then
    lost_delay = string.sub(record, 13, 20)
    if headlen < 20 or not string.find(lost_delay, '^%d%d%d%d%d%d%d%d$') then return 'unreadable' end
  end
  return {
    headlen = headlen, metalen = metalen, flags = flags, lost_delay = lost_delay,
    attempts = tonumber(string.sub(record, 10, 12)),
  }
end

-- How many of the due ids fit into max_bytes: at least one, whatever its size. Small records count 4 KiB.
local function how_many_fit(ids, max_bytes)
  local sizes = meta_num('big') > 0 and #ids > 0 and call('ZMSCORE', KEYS[11], unpack(ids)) or {}
  local bytes = 0
  for i = 1, #ids do
    bytes = bytes + math.max(sizes[i] and at_score(sizes[i]) or 0, SMALL_BYTES)
    if bytes > max_bytes then return math.max(i - 1, 1), sizes end
  end
  return #ids, sizes
end

-- Sorts out what is due: {id, due, record, head, state, big} for each readable job; all others are dealt with.
local function sift(ids, dues, sizes)
  if #ids == 0 then return {} end
  local expiries = meta_num('exp') > 0 and call('ZMSCORE', KEYS[9], unpack(ids)) or {}
  local records, states = call('HMGET', KEYS[4], unpack(ids)), call('HMGET', KEYS[7], unpack(ids))
  local good = {}
  for i, id in ipairs(ids) do
    local record, s, expiry = records[i], read_state(states[i]), expiries[i] and at_score(expiries[i])
    local head = record and read_head(record)
    local broken = s and s.broken
    leaves('due', id)
    if expiry and expiry <= now then
      if meta.expire == 'dead' and (not s or broken) then
        s = never_delivered(dues[i])
        flag(s, BIG, sizes[i] and true or false)
      end
      expires(id, s)
    elseif not record then
      vanishes(id, s)
      count('lost', 1)
    elseif head == 'newer' then
      enters('due', id, now + NEWER_MS)
      note(now + NEWER_MS)
      count('newer', 1)
    elseif head == 'unreadable' or broken then
      if not s or broken then s = never_delivered(dues[i]) end
      flag(s, BIG, sizes[i] and true or false)
      flag(s, TTL, expiry and true or false)
      s.verdict = 0
      is_unreadable(id, s, head == 'unreadable' and head or 'broken state')
    else
      good[#good + 1] = {
        id = id, due = dues[i], record = record, head = head, state = s,
        big = sizes[i] and true or false, ttl = expiry and true or false,
      }
    end
  end
  return good
end
