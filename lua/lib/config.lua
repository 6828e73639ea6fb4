local CONFIG = {'attempts', 'backoff', 'retention', 'expire', 'max_jobs', 'max_bytes', 'forward'}

local function is_born()
  if meta.born then return end
  set('born', num(us))
  call('HSET', KEYS[2], queue, '')
end
