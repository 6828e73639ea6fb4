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
  if not counts[name] then
    counts[#counts + 1], counts[name] = name, 0
  end
  counts[name] = counts[name] + by
end

local function write_meta()
  for _, name in ipairs(counts) do
    local by = counts[name]
    if by ~= 0 and loaded then
      set(name, num(meta_num(name) + by))
    elseif by ~= 0 then
      call('HINCRBY', KEYS[3], name, num(by))
    end
  end
  if #put > 0 then call('HSET', KEYS[3], unpack(put)) end
end

local function live_jobs()
  return meta_num('published') - meta_num('acked') - meta_num('cancelled') - meta_num('expired')
    - meta_num('purged') - meta_num('forwarded') - meta_num('lost')
end
