-- Opens a deployment: the first engine fixes its layout and number of shards.
-- Keys: 1 config
-- Args: 1 clock, 2 layout, 3 shards
-- Returns: ok, us, layout, shards, when they were fixed, the key: what is fixed, whoever fixed it. Or: foreign, us, the
--          key, if it is no hash
-- Repeat: harmless
-- Calls: 6
-- First write: HSETNX (refused whole at maxmemory)
local us = ARGV[1]
if us == '' then
  local t = redis.call('TIME')
  us = string.format('%.0f', t[1] * 1000000 + t[2])
end
local first = redis.pcall('HSETNX', KEYS[1], 'layout', ARGV[2])
if type(first) == 'table' and first.err and string.find(first.err, 'WRONGTYPE', 1, true) then
  return {'foreign', us, KEYS[1]}
end
redis.call('HSETNX', KEYS[1], 'shards', ARGV[3])
redis.call('HSETNX', KEYS[1], 'born', us)
local fixed = redis.call('HMGET', KEYS[1], 'layout', 'shards', 'born')
return {'ok', us, fixed[1], fixed[2], fixed[3], KEYS[1]}
