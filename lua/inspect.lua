-- One job, wherever it is.
-- Keys: 1 agenda, 2 queues, 3 meta, 4 pool, 5 due, 6 leased, 7 state, 8 dead, 9 exp, 10 waiting, 11 big
-- Args: 1 clock, 2 id
-- Returns: ok, us, id, place (due, leased or dead), the score there, state or empty, expiry or empty, record.
--          Or: gone, us
-- Repeat: reads only
-- Calls: 6; 4 if gone
-- First write: none
clock()
local id = ARGV[2]
local state = call('HGET', KEYS[7], id)
local phase = state and string.sub(state, 1, 1)
local place, key = 'due', KEYS[5]
if phase == 'L' then place, key = 'leased', KEYS[6] elseif phase == 'X' then place, key = 'dead', KEYS[8] end
local score = call('ZSCORE', key, id)
if not score then return {'gone', num(us)} end
local record = call('HGET', KEYS[4], id)
local expiry = call('ZSCORE', KEYS[9], id)
return {'ok', num(us), id, place, score, state or '', expiry or '', record or ''}
