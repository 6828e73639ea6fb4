-- Accepts jobs: each waits in due until its time. One that may replace takes the place of a waiting job of its id,
-- be it of the same batch: the effect is that of a cancel of the old one, then a publish.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 session, 3 sequence, 4 epoch, 5 max jobs, 6 max bytes,
--       then per job: id, when (+delay ms, or unix ms; an r before it if the job may replace), ttl ms or 0, record
-- Returns: ok | again | full, us, us of the first execution, a letter per job: n new, r replaced, d duplicate, f full;
--          full adds: jobs, dead, max jobs, bytes, max bytes. Or: moved, us, epoch. Or: superseded, us
-- Repeat: the same sequence answers what it answered first; a lower one does nothing
-- Notifies: head when the queue comes to be
-- Calls: 10 (+2 wake, +1 exp, +1 big, +1 head, +3 sweep; for all that are replaced +1 state, +1 exp, +1 big)
-- First write: HSET (refused whole at maxmemory)
local LARGE_BYTES = 4096

clock()
read_meta(ARGV[2], 'born', 'epoch', 'max_jobs', 'max_bytes', 'big', 'exp', 'mean', 'w', 'paused', 'forward',
  'sessions', 'sweep', 'published', 'acked', 'cancelled', 'expired', 'purged', 'forwarded', 'lost')

if num(meta_num('epoch')) ~= ARGV[4] then return {'moved', num(us), num(meta_num('epoch'))} end
local session, past = recall('%d+ [nrdf]+')
if session == 'superseded' then return {'superseded', num(us)} end
if session == 'again' then return {'again', num(us), past[3], past[4]} end

local jobs, mean = live_jobs(), meta_num('mean')
local max_jobs, max_bytes = whole(meta.max_jobs) or tonumber(ARGV[5]), whole(meta.max_bytes) or tonumber(ARGV[6])

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
  local letters = string.rep('f', (#ARGV - 6) / 4)
  remember(0, num(us) .. ' ' .. letters)
  write_meta()
  sweep_sessions()
  return {'full', num(us), num(us), letters, num(jobs), num(dead), num(max_jobs),
    num(jobs * mean), num(max_bytes)}
end

local ids = {}
for i = 7, #ARGV, 4 do ids[#ids + 1] = ARGV[i] end
local waiting, states = call('ZMSCORE', KEYS[5], unpack(ids)), call('HMGET', KEYS[7], unpack(ids))
local letters, kept, accepted, replaced, ended, newborn = {}, {}, 0, 0, 0, false
for i, id in ipairs(ids) do
  local waits = waiting[i] or kept[id]
  if not waits and not states[i] then
    letters[i], kept[id] = 'n', i
    accepted = accepted + 1
  elseif waits and string.sub(ARGV[4 * i + 4], 1, 1) == 'r' then
    if not kept[id] then
      is_forgotten(id, read_state(states[i]))
      ended = ended + 1
    end
    letters[i], kept[id] = 'r', i
    accepted, replaced = accepted + 1, replaced + 1
  else
    letters[i] = 'd'
  end
end

local pool, due, exp, big, bytes = {}, {}, {}, {}, 0
for i, id in ipairs(ids) do
  if kept[id] == i then
    local when, ttl, record = ARGV[4 * i + 4], tonumber(ARGV[4 * i + 5]), ARGV[4 * i + 6]
    local delay = string.match(when, '%+(%d+)')
    local at = delay and after(tonumber(delay)) or tonumber(string.match(when, '%d+'))
    pool[#pool + 1], pool[#pool + 2] = id, record
    due[#due + 1], due[#due + 2] = num(at), id
    if ttl > 0 then
      exp[#exp + 1], exp[#exp + 2] = num(after(ttl)), id
      note(after(ttl))
    end
    if #record > LARGE_BYTES then big[#big + 1], big[#big + 2] = num(#record), id end
    bytes = bytes + #record
    arrives(at)
  end
end

if accepted > 0 then
  local others = math.max(jobs - ended, 0)
  call('HSET', KEYS[4], unpack(pool))
  apply()
  call('ZADD', KEYS[5], unpack(due))
  if #exp > 0 then call('ZADD', KEYS[9], unpack(exp)) end
  if #big > 0 then call('ZADD', KEYS[11], unpack(big)) end
  newborn = not meta.born
  is_born()
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
