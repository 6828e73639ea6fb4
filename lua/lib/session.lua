-- ARGV[2] names a lane's session in meta, ARGV[3] is the sequence of this batch.
local SESSION_MS = 600000

-- The lane's last batch: sequence, until when it is kept, answer. What cannot be read, or was kept long enough, is none.
local function recall(answer)
  local text = meta[ARGV[2]]
  local last, kept = string.match(text or '', '^(%d+) (%d+) ' .. answer .. '$')
  last, kept = whole(last), whole(kept)
  if not last or not kept or kept <= now then text = nil end
  if not text then return 'new' end
  local past = {}
  for part in string.gmatch(text, '%S+') do past[#past + 1] = part end
  local this = tonumber(ARGV[3])
  if this == last then return 'again', past end
  if this < last then return 'superseded' end
  return 'new'
end

local function remember(keep_until, answer)
  if not meta[ARGV[2]] then count('sessions', 1) end
  set(ARGV[2], ARGV[3] .. ' ' .. num(math.max(now + SESSION_MS, keep_until)) .. ' ' .. answer)
end
