-- KEYS[1]: the prefix of the cache. ARGV: owner, the time from which entries are fresh, milliseconds of a claim's lease
-- (0: no claims), and keys. Gives the entry of each key, or nil, and 1 if the owner has claimed it now.
local found = {}
for number = 4, #ARGV do
  local name = KEYS[1] .. ARGV[number]
  local entry, claimed = redis.call('GET', name), 0
  local key = redis.call('GET', name .. ':alias')
  local other = key and redis.call('GET', KEYS[1] .. key)
  -- times of the same length are in the order of their text
  if other and (not entry or string.sub(other, 1, 17) > string.sub(entry, 1, 17)) then entry = other end
  local stored = entry and tonumber(string.sub(entry, 1, 17)) or -1
  if ARGV[3] ~= '0' and stored < tonumber(ARGV[2]) then
    if redis.call('SET', name .. ':claim', ARGV[1], 'NX', 'PX', ARGV[3]) then claimed = 1 end
  end
  found[#found + 1] = entry
  found[#found + 1] = claimed
end
return found
