us = us_text and tonumber(us_text)
if plain then
  for _, command in ipairs(rest) do call(unpack(command)) end
  return plain
end
