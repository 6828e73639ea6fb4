-- Makes dead letters of waiting jobs that nobody has had. Their queue is tended after, by the end of its pause.
-- Keys: 1 meta, 2 due, 3 state, 4 dead, 5 big
-- Args: per job: id, when it died, its state without flags
-- Returns: how many
local BIG, FLAGS_AT = '04', 30
local buried = 0
for i = 1, #ARGV, 3 do
  local id, died, state = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if redis.call('ZREM', KEYS[2], id) == 1 then
    if redis.call('ZSCORE', KEYS[5], id) then
      state = string.sub(state, 1, FLAGS_AT - 1) .. BIG .. string.sub(state, FLAGS_AT + 2)
    end
    redis.call('HSET', KEYS[3], id, state)
    redis.call('ZADD', KEYS[4], died, id)
    buried = buried + 1
  end
end
if buried > 0 then redis.call('HINCRBY', KEYS[1], 'died', buried) end
return buried
