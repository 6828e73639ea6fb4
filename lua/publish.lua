-- Accepts jobs: each waits in due until its time. One that may replace takes the place of a waiting job of its id,
-- be it of the same batch: the effect is that of a cancel of the old one, then a publish. One that edits changes a waiting
-- job that is still as its editor found it, which keeps its attempts; nothing is counted.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 session, 3 sequence, 4 max jobs, 5 max bytes,
--       then per job: id, when (+delay ms, or unix ms; an r before it if the job may replace), ttl ms or 0, record.
--       An edit has before its when an e, the SHA-1 of the record and the due time that were found, and a space after
--       each; where its ttl is empty that of the job stays
-- Returns: ok | again | full, us, us of the first execution, a letter per job: n new, r replaced or edited, d duplicate or not as found, f full;
--          full adds: jobs, dead, max jobs, bytes, max bytes. Or: superseded, us
--          Or: gate, us, what newer scripts are needed for
-- Repeat: the same sequence answers what it answered first; a lower one does nothing
-- Notifies: head when the queue comes to be
-- Calls: 9 (8 of one job alone; +1 exp, +2 wake, +1 head, +1 once a minute). What is not plain: 10 (+1 once a minute), 13
--        where an id is in use (+2 wake, +1 exp, +1 big, +1 head, +3 sweep; for all that are replaced +1 state, +1 exp, +1 big; for all that are edited +1 pool, +2 state, +1 exp, +1 big)
-- First write: HSET (refused whole at maxmemory)
-- Instructions: 208 k alone, 20 k a job of 100
local LARGE_BYTES, NAMED_MS = 4096, 60000
local EDIT = '^e(%x+) (%d+) '

clock()
read_meta(ARGV[2], 'born', 'max_jobs', 'max_bytes', 'big', 'exp', 'mean', 'w', 'paused', 'forward',
  'sessions', 'sweep', 'published', 'acked', 'cancelled', 'expired', 'purged', 'forwarded', 'lost')
if meta.gate then return gated() end
local session, past = recall('%d+ [nrdf]+')
if session == 'superseded' then return {'superseded', num(us)} end
if session == 'again' then return {'again', num(us), past[3], past[4]} end

local ids, has_edits = {}, false
for i = 6, #ARGV, 4 do
  local when_text, edits = string.gsub(ARGV[i + 1], EDIT, '')
  if not string.find(when_text, '^r?%+?%d+$') then
    return redis.error_reply('ERR a due time has a form that this script does not know: ' .. when_text)
  end
  ids[#ids + 1] = ARGV[i]
  has_edits = has_edits or edits > 0
end

local jobs, mean = live_jobs(), meta_num('mean')
local max_jobs, max_bytes = whole(meta.max_jobs) or tonumber(ARGV[4]), whole(meta.max_bytes) or tonumber(ARGV[5])

-- The name is written again once a minute in each lane, since the index may have been lost.
local function is_named_again()
  local kept = whole(string.match(meta[ARGV[2]] or '', '^%d+ (%d+) '))
  return not kept or math.floor(kept / NAMED_MS) ~= math.floor((now + SESSION_MS) / NAMED_MS)
end

local function is_full()
  return (max_jobs > 0 and jobs >= max_jobs) or (max_bytes > 0 and jobs * mean >= max_bytes)
end

-- A queue that seems full is counted, since a counter may have been lost.
local dead = 0
if is_full() then
  dead = call('ZCARD', KEYS[8])
  local held = call('ZCARD', KEYS[5]) + call('ZCARD', KEYS[6]) + dead
  if held ~= jobs then set('published', num(held + ended_jobs())) end
  jobs = held
end
if is_full() then
  local letters = string.rep('f', (#ARGV - 5) / 4)
  remember(0, num(us) .. ' ' .. letters)
  write_meta()
  sweep_sessions()
  return {'full', num(us), num(us), letters, num(jobs), num(dead), num(max_jobs),
    num(jobs * mean), num(max_bytes)}
end

local waiting, states = call('ZMSCORE', KEYS[5], unpack(ids)), call('HMGET', KEYS[7], unpack(ids))
local records = has_edits and call('HMGET', KEYS[4], unpack(ids)) or {}
local letters, kept, edited, edits, accepted, replaced, ended, newborn = {}, {}, {}, 0, 0, 0, 0, false

-- What another job of the batch has made of it, its editor has not found.
local function is_as_found(i, id)
  local digest, due = string.match(ARGV[4 * i + 3], EDIT)
  return waiting[i] and not kept[id] and records[i] and redis.sha1hex(records[i]) == digest
    and num(at_score(waiting[i])) == due
end

-- The job's state stays, but for what says that it has a TTL or is large.
local function is_edited(id, s, bytes, ttl)
  if (s and has(s.flags, BIG)) or (not s and meta_num('big') > 0) then leaves('big', id) end
  if ttl and ((s and has(s.flags, TTL)) or (not s and meta_num('exp') > 0)) then leaves('exp', id) end
  if s and not s.broken then
    flag(s, BIG, bytes > LARGE_BYTES)
    if ttl then flag(s, TTL, ttl > 0) end
    keeps(id, s)
  end
end

for i, id in ipairs(ids) do
  local waits, how = waiting[i] or kept[id], string.sub(ARGV[4 * i + 3], 1, 1)
  if how == 'e' then
    letters[i] = 'd'
    if is_as_found(i, id) then
      letters[i], kept[id], edited[id] = 'r', i, true
      edits, ended = edits + 1, ended + 1
    end
  elseif not waits and not states[i] then
    letters[i], kept[id] = 'n', i
    accepted = accepted + 1
  elseif waits and how == 'r' then
    if not kept[id] then ended = ended + 1 end
    if not kept[id] or edited[id] then is_forgotten(id, read_state(states[i])) end
    letters[i], kept[id], edited[id] = 'r', i, nil
    accepted, replaced = accepted + 1, replaced + 1
  else
    letters[i] = 'd'
  end
end

local pool, due, exp, big, bytes = {}, {}, {}, {}, 0
for i, id in ipairs(ids) do
  if kept[id] == i then
    local when, ttl, record = string.gsub(ARGV[4 * i + 3], EDIT, ''), tonumber(ARGV[4 * i + 4]), ARGV[4 * i + 5]
    local delay = string.match(when, '%+(%d+)')
    local at = delay and after(tonumber(delay)) or tonumber(string.match(when, '%d+'))
    pool[#pool + 1], pool[#pool + 2] = id, record
    due[#due + 1], due[#due + 2] = num(at), id
    if edited[id] then is_edited(id, read_state(states[i]), #record, ttl) end
    if ttl and ttl > 0 then
      exp[#exp + 1], exp[#exp + 2] = num(after(ttl)), id
      note(after(ttl))
    end
    if #record > LARGE_BYTES then big[#big + 1], big[#big + 2] = num(#record), id end
    bytes = bytes + #record
    arrives(at)
  end
end

if accepted + edits > 0 then
  local others = math.max(jobs - ended, 0)
  call('HSET', KEYS[4], unpack(pool))
  apply()
  call('ZADD', KEYS[5], unpack(due))
  if #exp > 0 then call('ZADD', KEYS[9], unpack(exp)) end
  if #big > 0 then call('ZADD', KEYS[11], unpack(big)) end
  newborn = not meta.born
  if newborn or is_named_again() then is_born() end
  set('mean', num(math.floor((mean * others + bytes) / (others + #pool / 2))))
  count('published', accepted)
  count('cancelled', replaced)
  count('exp', #exp / 2)
  count('big', #big / 2)
end
letters = table.concat(letters)
remember(0, num(us) .. ' ' .. letters)
write_meta()
sweep_sessions()
lower_agenda(soon)
-- Nobody can wait for a queue that is new, or was lost with all its keys: who tends the shard is told.
if newborn then head = head or now end
announce()
return {'ok', num(us), num(us), letters}
