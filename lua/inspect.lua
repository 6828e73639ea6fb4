-- One job, wherever it is.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 id
-- Returns: ok, us, id, place (due, leased or dead), the score there, state or empty, expiry or empty, record.
--          Or: gone, us
-- Repeat: reads only
-- Calls: 6; 4 if gone (+2 if the state cannot be read)
-- First write: none
only_reads = true
clock()
local id = ARGV[2]
local state = call('HGET', KEYS[7], id)
local s = read_state(state)
local places, keys = {'due'}, {KEYS[5]}
if s and s.broken then
  places, keys = {'due', 'leased', 'dead'}, {KEYS[5], KEYS[6], KEYS[8]}
elseif s and s.phase == 'L' then
  places, keys = {'leased'}, {KEYS[6]}
elseif s and s.phase == 'X' then
  places, keys = {'dead'}, {KEYS[8]}
end
local place, score
for i, key in ipairs(keys) do
  if not score then place, score = places[i], call('ZSCORE', key, id) end
end
if not score then return {'gone', num(us)} end
local record = call('HGET', KEYS[4], id)
local expiry = call('ZSCORE', KEYS[9], id)
return {'ok', num(us), id, place, num(at_score(score)), state or '', expiry and num(at_score(expiry)) or '',
  record or ''}
