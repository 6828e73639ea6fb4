-- Removes elements of jobs that have no body: they were acknowledged, deleted, or have expired, and lmstfy would drop
-- them as soon as it met them.
-- Keys: 1 lock, 2 a list or a sorted set, then the body of each
-- Args: 1 token, 2 lock ms, 3 list or sorted, then elements
-- Returns: how many
local dropped = 0
for i = 4, #ARGV do
  if redis.call('EXISTS', KEYS[i - 1]) == 0 then
    if ARGV[3] == 'list' then
      dropped = dropped + redis.call('LREM', KEYS[2], -1, ARGV[i])
    else
      dropped = dropped + redis.call('ZREM', KEYS[2], ARGV[i])
    end
  end
end
return dropped
