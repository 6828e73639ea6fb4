local meta, put, counts, loaded = {}, {}, {}, false

local function read_meta(...)
  local names = {...}
  local values = call('HMGET', KEYS[3], ...)
  for i = 1, #names do meta[names[i]] = values[i] or nil end
  loaded = true
end

local function meta_num(name)
  return tonumber(meta[name] or '0')
end

local function set(name, value)
  meta[name] = value
  put[#put + 1] = name
  put[#put + 1] = value
end

local function count(name, by)
  if by ~= 0 then counts[#counts + 1] = {name, by} end
end

local function write_meta()
  for _, c in ipairs(counts) do
    if loaded then set(c[1], num(meta_num(c[1]) + c[2])) else call('HINCRBY', KEYS[3], c[1], num(c[2])) end
  end
  if #put > 0 then call('HSET', KEYS[3], unpack(put)) end
end

local function live_jobs()
  return meta_num('published') - meta_num('acked') - meta_num('cancelled') - meta_num('expired')
    - meta_num('purged') - meta_num('forwarded') - meta_num('lost')
end
