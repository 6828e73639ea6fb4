-- What every script here begins with: nothing is done unless this import holds the lock, which it takes if nobody does.
-- Keys: 1 lock, then the script's own
-- Args: 1 the import's token, 2 how long the lock lasts, in ms, then the script's own
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return redis.error_reply('IMPORTLOCKED another import holds the lock') end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
