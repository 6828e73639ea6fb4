-- Takes entries off the journal whose jobs are published, with the keys that held their bodies.
-- Keys: 1 lock, 2 entries, then bodies
-- Args: 1 token, 2 lock ms, then entries
-- Returns: how many entries there were
local were = 0
for i = 3, #ARGV do were = were + redis.call('ZREM', KEYS[2], ARGV[i]) end
for i = 3, #KEYS do redis.call('DEL', KEYS[i]) end
return were
