local CONFIG = {'attempts', 'backoff', 'retention', 'expire', 'max_jobs', 'max_bytes', 'forward', 'push'}
local TEXTS = {paused = true, backoff = true, expire = true, forward = true, push = true, forward_error = true}

-- A field of meta as it is answered: empty if it is not set, or a number that cannot be read.
local function shown(name)
  return (TEXTS[name] or whole(meta[name])) and meta[name] or ''
end
